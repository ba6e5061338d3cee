(* The checker: is a claim proved by these tables and witnesses? Nothing of a proof is trusted.

   Tables hold integers, read as multiples of 1 / one: upper bounds of e^A x y, where A x y is how
   much the values x and y of a node reveal through all records on one side of it. 0 is no bound. *)
From Coq Require Import List Arith ZArith QArith Bool.
From Pufferflow Require Import Numbers Claims.
Import ListNotations.
Open Scope Z_scope.

Definition table := list (list Z).
Definition get (E : table) (x y : nat) : Z := nth y (nth x E []) 0.
Definition every (k : nat) (f : nat -> bool) : bool := forallb f (seq 0 k).

(* What proves a pair: COUNT, or flows between the values of the neighbour. *)
Inductive witness := Count | Flows (arcs : list (nat * nat * Z)).
Definition witnesses := list (list witness).

(* Bounds of the neighbour's distribution given each value of the node, for the values it can have.
*)
Record rows := { can : nat -> bool; high : table; low : table }.

Section numbers.
Variable one : Z.

(* -- STEP ----------------------------------------------------------------------------------- *)

(* e^w from E, w = c + A; the same value never needs it. *)
Definition growth (c : Z) (E : table) : table := map (map (fun e => up (c * e) one)) E.

Fixpoint move (G : table) (arcs : list (nat * nat * Z)) (net : list Z) : option (list Z) :=
  match arcs with
  | [] => Some net
  | (z, y, g) :: rest =>
      let e := get G z y in
      if (0 <=? g) && (0 <? e) then move G rest (add (add net z (- (g * one))) y (g * e))
      else None
  end.

Definition pair_ok (r : rows) (G : table) (count e : Z) (w : witness) (x y : nat) : bool :=
  match w with
  | Count => (0 <? count) && (count <=? e)
  | Flows arcs =>
      match move G arcs (map (Z.mul one) (nth x (high r) [])) with
      | Some net => under net (nth y (low r) []) e
      | None => false
      end
  end.

(* From the growth at the neighbour to the table of the node. *)
Definition step_ok (k : nat) (r : rows) (G F : table) (count : Z) (W : witnesses) : bool :=
  every k (fun x => every k (fun y =>
    let e := get F x y in
    (e <=? 0)
    || can r x && can r y
       && ((x =? y)%nat && (one <=? e) || pair_ok r G count e (nth y (nth x W []) Count) x y))).

(* Is E within F, wherever F bounds something? *)
Definition within (k : nat) (E F : table) : bool :=
  every k (fun x => every k (fun y =>
    let f := get F x y in (f <=? 0) || (0 <? get E x y) && (get E x y <=? f))).

Definition shaped (k : nat) (E : table) : bool :=
  (length E <=? k)%nat && forallb (fun row => (length row <=? k)%nat) E.

(* -- the nodes on one side, of a chain with one matrix ---------------------------------------- *)

(* Tables of the nodes with 1, 2, ... nodes on that side; the table from which all others start,
   and one that a step from there proves. *)
Record side := {
  early : list (table * witnesses);
  begin : table;
  rest : table;
  proof : witnesses;
  capped : bool  (* whether COUNT is used by the others *)
}.

Definition ones (k : nat) : table := repeat (repeat one k) k.

Variable k : nat.
Variable c : Z.            (* above e^(1/scale) *)
Variable count : Z -> Z.   (* count n is above e^(n/scale) *)

Fixpoint early_ok (r : nat -> rows) (j : nat) (E : table) (l : list (table * witnesses))
  : bool :=
  match l with
  | [] => true
  | (F, W) :: l' =>
      shaped k F
      && step_ok k (r j) (growth c E) F (count (Z.of_nat (S j))) W
      && early_ok r (S j) F l'
  end.

Definition tables (s : side) : list table := ones k :: map fst (early s).

(* Nodes have up to n nodes on that side. *)
Definition side_ok (r : nat -> rows) (late : rows) (n : Z) (s : side) : bool :=
  early_ok r 0 (ones k) (early s)
  && ((n <=? Z.of_nat (length (early s)))
      || shaped k (begin s) && shaped k (rest s)
         && within k (last (tables s) []) (begin s)
         && step_ok k late (growth c (begin s)) (rest s) (if capped s then count n else 0) (proof s)
         && within k (rest s) (begin s)).

Definition at_node (s : side) (n : Z) : table :=
  if n <? Z.of_nat (length (tables s)) then nth (Z.to_nat n) (tables s) [] else rest s.

(* -- READ ------------------------------------------------------------------------------------- *)

Variable L : Z.   (* below e^epsilon *)

(* cw is above e^(w / scale); first and last are the values that these records of a window can have.
*)
Definition read_ok (w : Z) (cw : Z) (first last : nat -> bool) (A B : table) : bool :=
  if w =? 1 then
    every k (fun x => every k (fun y =>
      negb (first x) || negb (first y) || (x =? y)%nat
      || (0 <? get A x y) && (0 <? get B x y) && (cw * get A x y * get B x y <=? L * one * one)))
  else
    let most E := fold_right Z.max 0 (concat E) in
    let known possible E := every k (fun x => every k (fun y =>
      negb (possible x) || negb (possible y) || (0 <? get E x y))) in
    known last A && known first B && (cw * most A * most B <=? L * one * one).

(* The nodes before which i lie, and i nodes from the other end; then all others. *)
Definition nodes_ok (w cw n : Z) (possible : nat -> bool) (ahead past : side) : bool :=
  let a := length (tables ahead) in
  let b := length (tables past) in
  let good i := read_ok w cw possible possible (at_node ahead (n - i)) (at_node past i) in
  forallb (fun i => (n <? Z.of_nat i) || good (Z.of_nat i)) (seq 0 (S b))
  && forallb (fun i => (n <? Z.of_nat i) || good (n - Z.of_nat i)) (seq 0 a).

(* -- the nodes on one side, of a periodic chain ------------------------------------------------ *)

(* A table for each phase: its neighbour, one step further, has the phase next. *)
Definition at_phase (l : list (table * witnesses)) (p : nat) : table := fst (nth p l ([], [])).

Definition started (E : table) : bool :=
  every k (fun x => every k (fun y => (get E x y <=? 0) || (one <=? get E x y))).

Definition cycle_ok (N : nat) (r : nat -> rows) (next : nat -> nat) (n : Z) (capped : bool)
  (l : list (table * witnesses)) : bool :=
  let most := if capped then count n else 0 in
  every N (fun p =>
    shaped k (at_phase l p) && started (at_phase l p)
    && step_ok k (r p) (growth c (at_phase l (next p))) (at_phase l p) most
         (snd (nth p l ([], [])))).

Definition phases_ok (N : nat) (w cw : Z) (possible : nat -> nat -> bool)
  (ahead past : list (table * witnesses)) : bool :=
  every N (fun p =>
    let q := Z.to_nat ((Z.of_nat p + w - 1) mod Z.of_nat N) in
    read_ok w cw (possible p) (possible q) (at_phase ahead q) (at_phase past p)).
End numbers.

(* -- a model ---------------------------------------------------------------------------------- *)

Definition total_Q (l : list Q) : Q := fold_right Qplus 0%Q l.
Definition row_ok (k : nat) (row : list Q) : bool :=
  (length row =? k)%nat && forallb (fun p => 0 <=? Qnum p) row && Qeq_bool (total_Q row) 1.
Definition matrix_ok (k : nat) (M : list (list Q)) : bool :=
  (length M =? k)%nat && forallb (row_ok k) M.
Definition model_ok (m : model) : bool :=
  (0 <? states m)%nat && forallb (matrix_ok (states m)) (matrices m).

Definition at_xy (M : list (list Q)) (x y : nat) : Q := nth y (nth x M []) 0%Q.
Definition weight (pi : list Z) (x : nat) : Z := nth x pi 0.
Definition weights (pis : list (list Z)) (phase : nat) : list Z := nth phase pis [].

(* Weights of each phase that are stationary, up to a factor. *)
Definition stationary_ok (m : model) (pis : list (list Z)) : bool :=
  every (period m) (fun p =>
    forallb (Z.leb 0) (weights pis p)
    && every (states m) (fun x =>
      Qeq_bool
        (total_Q (map (fun z => (inject_Z (weight (weights pis p) z) * at_xy (matrix m p) z x)%Q)
                      (seq 0 (states m))))
        (inject_Z (weight (weights pis (S p mod period m)) x)))).

(* Each value of each phase leads to one listed before it; the first is the root. *)
Fixpoint leads (m : model) (known l : list (nat * nat)) : bool :=
  match l with
  | [] => every (period m) (fun p => every (states m) (fun x =>
      existsb (fun place => (fst place =? p)%nat && (snd place =? x)%nat) known))
  | (p, z) :: l' =>
      (p <? period m)%nat && (z <? states m)%nat
      && existsb (fun place => (fst place =? S p mod period m)%nat
                               && (0 <? Qnum (at_xy (matrix m p) z (snd place)))) known
      && leads m ((p, z) :: known) l'
  end.

Definition unique_ok (m : model) (pis : list (list Z)) (l : list (nat * nat)) : bool :=
  match l with
  | (p, x) :: l' => (p <? period m)%nat && (x <? states m)%nat
                    && (0 <? weight (weights pis p) x) && leads m [(p, x)] l'
  | [] => false
  end.

Definition forward_rows (one : Z) (M : list (list Q)) : rows := {|
  can := fun _ => true;
  high := map (map (fun p => up (one * Qnum p) (Zpos (Qden p)))) M;
  low := map (map (fun p => down (one * Qnum p) (Zpos (Qden p)))) M |}.

(* From the weights of the neighbour to those of the node. *)
Definition backward_rows (one : Z) (k : nat) (M : list (list Q)) (pi pi' : list Z) : rows :=
  let table round := map (fun x => map (fun z =>
    let p := at_xy M z x in round (one * (weight pi z * Qnum p)) (Zpos (Qden p) * weight pi' x))
    (seq 0 k)) (seq 0 k) in
  {| can := fun x => 0 <? weight pi' x; high := table up; low := table down |}.

(* Nodes from, ..., upto (from 1) have a quilt so many steps to the left and right. *)
Record quilt := { from : Z; upto : Z; to_left : option positive; to_right : option positive }.

(* Tables of the largest ratios of distributions so many steps away. *)
Definition ratios := list (positive * table).

(* -- certificates ----------------------------------------------------------------------------- *)

Record hints := {
  one : Z;
  halvings : nat;
  stationary : list (list Z);
  order : list (nat * nat);
  ahead : side;
  past : side;
  cycle_ahead : list (table * witnesses);  (* instead, for periodic chains *)
  cycle_past : list (table * witnesses);
  capped_cycle : bool;
  quilts : list quilt;  (* instead, for Markov quilts *)
  quilts_ahead : ratios;
  quilts_past : ratios
}.

Definition cost (a : claim) : Q := Qinv (scale a).

(* Records of a window, and windows of the longest segment but one. *)
Definition hidden (a : claim) : Z := Z.min (window a) (longest a).
Definition others (a : claim) : Z := longest a - hidden a.

Definition exp_of (h : hints) (n : Z) (r : Q) : Z :=
  exp_up (one h) (halvings h) (n * Qnum r) (Zpos (Qden r)).

Definition stationary_chain_ok (a : claim) (m : model) (h : hints) : bool :=
  let k := states m in
  let M := matrix m 0 in
  let pi := weights (stationary h) 0 in
  let c := exp_of h 1 (cost a) in
  let count n := exp_of h n (cost a) in
  let L := exp_down (one h) (halvings h) (Qnum (epsilon a)) (Zpos (Qden (epsilon a))) in
  let r := forward_rows (one h) M in
  let b := backward_rows (one h) k M pi pi in
  (period m =? 1)%nat && (0 <? one h)
  && stationary_ok m (stationary h) && unique_ok m (stationary h) (order h)
  && (0 <? c) && (0 <? exp_of h (hidden a) (cost a))
  && forallb (forallb (Z.leb 0)) (low r) && forallb (forallb (Z.leb 0)) (low b)
  && side_ok (one h) k c count (fun _ => r) r (others a) (ahead h)
  && side_ok (one h) k c count (fun _ => b) b (others a) (past h)
  && nodes_ok (one h) k L (hidden a) (exp_of h (hidden a) (cost a)) (others a)
       (fun x => 0 <? weight pi x) (ahead h) (past h).

Definition periodic_chain_ok (a : claim) (m : model) (h : hints) : bool :=
  let k := states m in
  let N := period m in
  let pi := weights (stationary h) in
  let c := exp_of h 1 (cost a) in
  let count n := exp_of h n (cost a) in
  let L := exp_down (one h) (halvings h) (Qnum (epsilon a)) (Zpos (Qden (epsilon a))) in
  let next p := (S p mod N)%nat in
  let prev p := ((p + (N - 1)) mod N)%nat in
  let r p := forward_rows (one h) (matrix m p) in
  let b p := backward_rows (one h) k (matrix m (prev p)) (pi (prev p)) (pi p) in
  (0 <? one h) && stationary_ok m (stationary h) && unique_ok m (stationary h) (order h)
  && (0 <? c) && (0 <? exp_of h (hidden a) (cost a))
  && every N (fun p => forallb (forallb (Z.leb 0)) (low (r p)))
  && every N (fun p => forallb (forallb (Z.leb 0)) (low (b p)))
  && cycle_ok (one h) k c count N r next (others a) (capped_cycle h) (cycle_ahead h)
  && cycle_ok (one h) k c count N b prev (others a) (capped_cycle h) (cycle_past h)
  && phases_ok (one h) k L N (hidden a) (exp_of h (hidden a) (cost a))
       (fun p x => 0 <? weight (pi p) x) (cycle_ahead h) (cycle_past h).

(* -- Markov quilts ------------------------------------------------------------------------- *)

Fixpoint dot_Z (l s : list Z) : Z :=
  match l, s with a :: l', b :: s' => a * b + dot_Z l' s' | _, _ => 0 end.

(* Products of matrices, and powers, rounded in one direction. *)
Definition product (round : Z -> Z -> Z) (one : Z) (k : nat) (A B : table) : table :=
  let columns := map (fun y => map (fun z => get B z y) (seq 0 k)) (seq 0 k) in
  map (fun row => map (fun column => round (dot_Z row column) one) columns) A.

Fixpoint power_of (round : Z -> Z -> Z) (one : Z) (k : nat) (M : table) (n : positive) : table :=
  match n with
  | xH => M
  | xO n' => let H := power_of round one k M n' in product round one k H H
  | xI n' => let H := power_of round one k M n' in
             product round one k (product round one k H H) M
  end.

Definition rows_after (one : Z) (k : nat) (M : list (list Q)) (n : positive) : rows :=
  let r := forward_rows one M in
  {| can := fun _ => true;
     high := power_of up one k (high r) n; low := power_of down one k (low r) n |}.

Definition rows_before (one : Z) (k : nat) (M : list (list Q)) (pi : list Z) (n : positive)
  : rows :=
  let r := rows_after one k M n in
  let turned (round : Z -> Z -> Z) E := map (fun x => map (fun z =>
    round (weight pi z * get E z x) (weight pi x)) (seq 0 k)) (seq 0 k) in
  {| can := fun x => 0 <? weight pi x; high := turned up (high r); low := turned down (low r) |}.

Definition ratio_of (l : ratios) (n : positive) : table :=
  match find (fun p => (fst p =? n)%positive) l with Some p => snd p | None => [] end.

Definition ratios_ok (one : Z) (k : nat) (r : positive -> rows) (l : ratios) : bool :=
  forallb (fun p =>
    let rows := r (fst p) in
    forallb (forallb (Z.leb 0)) (low rows)
    && step_ok one k rows [] (snd p) 0 (repeat (repeat (Flows []) k) k)) l.

Fixpoint covering (covered windows : Z) (l : list quilt) : bool :=
  match l with
  | [] => windows <=? covered
  | s :: l' =>
      (from s =? covered + 1) && (from s <=? upto s) && (upto s <=? windows)
      && match to_left s with None => true | Some n => Zpos n <? from s end
      && match to_right s with None => true | Some n => Zpos n <=? windows - upto s end
      && covering (upto s) windows l'
  end.

Definition quilts_ok (a : claim) (m : model) (h : hints) (l : list quilt) (ahead past : ratios)
  : bool :=
  let k := states m in
  let M := matrix m 0 in
  let pi := weights (stationary h) 0 in
  let windows := others a + 1 in
  let count n := exp_of h n (cost a) in
  let L := exp_down (one h) (halvings h) (Qnum (epsilon a)) (Zpos (Qden (epsilon a))) in
  let cw := exp_of h (hidden a) (cost a) in
  let level (can : nat -> bool) n :=
    map (fun x => map (fun y => if can x && can y then count n else 0) (seq 0 k)) (seq 0 k) in
  let away l n := growth (one h) (count (Zpos n - 1)) (ratio_of l n) in
  let possible x := 0 <? weight pi x in
  (period m =? 1)%nat && (0 <? one h) && (0 <? cw) && (0 <? count 1)
  && stationary_ok m (stationary h) && unique_ok m (stationary h) (order h)
  && ratios_ok (one h) k (rows_after (one h) k M) ahead
  && ratios_ok (one h) k (rows_before (one h) k M pi) past
  && covering 0 windows l
  && forallb (fun s =>
       match to_left s with None => 0 <? count (upto s - 1) | Some n => 0 <? count (Zpos n - 1) end
       && match to_right s with
          | None => 0 <? count (windows - from s) | Some n => 0 <? count (Zpos n - 1) end
       && read_ok (one h) k L (hidden a) cw possible possible
            (match to_right s with
             | None => level (fun _ => true) (windows - from s) | Some n => away ahead n end)
            (match to_left s with
             | None => level possible (upto s - 1) | Some n => away past n end)) l.

(* -- mixing families ----------------------------------------------------------------------- *)

Fixpoint all2 (f : Z -> Z -> bool) (l s : list Z) : bool :=
  match l, s with
  | a :: l', b :: s' => if f a b then all2 f l' s' else false
  | _, _ => true
  end.

Fixpoint long (l : list Z) (n : Z) : Z := match l with [] => n | _ :: r => long r (n + 1) end.

(* E: what the nodes with 0, 1, ... nodes on a side reveal through these, whatever their values. *)
Definition mixing_ok (a : claim) (m : mixing) (h : hints) (E : list Z) : bool :=
  let c := exp_of h 1 (cost a) in
  let cm := exp_of h (apart m) (cost a) in
  let cm1 := exp_of h (apart m - 1) (cost a) in
  let cw := exp_of h (hidden a) (cost a) in
  let L := exp_down (one h) (halvings h) (Qnum (epsilon a)) (Zpos (Qden (epsilon a))) in
  let early := firstn (Z.to_nat (apart m)) E in
  let num := Qnum (overlap m) in
  let den := Zpos (Qden (overlap m)) in
  (0 <? one h) && (1 <=? apart m) && (0 <=? num) && (num <=? den)
  && (0 <? c) && (0 <? cm) && (0 <? cm1) && (0 <? cw)
  && (long E 0 =? others a + 1) && all2 Z.leb [one h] E
  && all2 (fun e d => c * d <=? e * one h) (tl early) early
  && all2 (fun e d => num * cm1 * one h + (den - num) * cm * d <=? e * one h * den)
       (skipn (Z.to_nat (apart m)) E) E
  && all2 (fun e d => d <=? e) (tl E) E
  && all2 (fun e d => cw * e * d <=? L * one h * one h) E (rev_append E []).

(* What all records of a segment reveal together. *)
Definition group_ok (a : claim) : bool := Qle_bool (inject_Z (longest a) * cost a) (epsilon a).

Definition proved (a : claim) (m : model) (h : hints) : bool :=
  match initial m with
  | Stationary => if (period m =? 1)%nat then stationary_chain_ok a m h
                  else periodic_chain_ok a m h
  | _ => false
  end.

(* A chain with its hints, or with quilts. *)
Definition with_quilts (a : claim) (m : model) (h : hints) : bool :=
  match initial m with
  | Stationary => quilts_ok a m h (quilts h) (quilts_ahead h) (quilts_past h)
  | _ => false
  end.

Fixpoint all_proved (a : claim) (l : list model) (hs : list hints) : bool :=
  match l, hs with
  | [], _ => true
  | m :: l', h :: hs' =>
      (match quilts h with [] => proved a m h | _ => with_quilts a m h end) && all_proved a l' hs'
  | _, _ => false
  end.

Definition check (a : claim) (hs : list hints) (mixing_hints : hints * list Z) : bool :=
  (0 <? Qnum (scale a)) && (0 <=? Qnum (epsilon a)) && (1 <=? longest a) && (1 <=? window a)
  && forallb model_ok (family a)
  && (group_ok a || all_proved a (family a) hs
                    && forallb (fun m => mixing_ok a m (fst mixing_hints) (snd mixing_hints))
                         (mixings a)).
