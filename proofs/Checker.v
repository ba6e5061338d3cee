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

(* What proves a pair: COUNT, flows between the values of the neighbour, or Lemma 6. *)
Inductive witness := Count | Flows (arcs : list (nat * nat * Z)) | Mixed.
Definition witnesses := list (list witness).

(* Bounds of the neighbour's distribution given each value of the node, if it is known; the values
   that the neighbour can have; a factor for a distribution that is not exactly so. *)
Record rows := { next : nat -> bool; known : nat -> bool; high : table; low : table; slack : Z }.

(* The distribution of a node some steps away is a multiple of weights, of which these are bounds of
   the square roots; the values that it may have. *)
Record mixed := { may : nat -> bool; root_up : nat -> nat -> Z; root_down : nat -> nat -> Z }.

(* A table, what proves it, the steps to the node that Lemma 6 looks at, and bounds of the square
   roots of the growth there. *)
Record step := { bound : table; proofs : witnesses; reach : positive; heights : table }.

Section numbers.
Variable one : Z.

(* -- STEP ----------------------------------------------------------------------------------- *)

(* e^w from E, w = c + A; the same value never needs it. *)
Definition growth (c : Z) (E : table) : table := map (map (fun e => up (c * e) one)) E.

Fixpoint move (next : nat -> bool) (G : table) (arcs : list (nat * nat * Z)) (net : list Z)
  : option (list Z) :=
  match arcs with
  | [] => Some net
  | (z, y, g) :: rest =>
      let e := get G z y in
      if (0 <=? g) && (0 <? e) && next y
      then move next G rest (add (add net z (- (g * one))) y (g * e))
      else None
  end.

(* (1 + sr)^2 <= e (s + r)^2 for any two values u and v of the node: r^2 is their cross ratio, s^2
   how much u exceeds v there. *)
Definition mixed_ok (k : nat) (m : mixed) (S : table) (e : Z) (x y : nat) : bool :=
  (one <=? e)
  && every k (fun u => negb (may m u) || every k (fun v => negb (may m v)
  || let p := root_up m x u * root_up m y v in
     let q := root_down m y u * root_down m x v in
     let s := get S u v in
     (p <=? q)
     || (0 <? s) && (let a := q * one + s * p in let b := s * q + p * one in
                     a * a * one <=? e * (b * b))
     || (0 <? q) && (p * p * one <=? e * (q * q)))).

Definition pair_ok (k : nat) (r : rows) (m : option mixed) (G S : table) (far count e : Z)
  (w : witness) (x y : nat) : bool :=
  match w with
  | Count => (0 <? count) && (count <=? e)
  | Flows arcs =>
      known r x && known r y && (0 <? slack r)
      && match move (next r) G arcs (map (Z.mul one) (nth x (high r) [])) with
         | Some net => under net (nth y (low r) []) (down (e * one) (slack r))
         | None => false
         end
  | Mixed =>
      match m with
      | Some m => (0 <? far) && mixed_ok k m S (down (e * one) far) x y
      | None => false
      end
  end.

Definition heights_ok (k : nat) (G S : table) : bool :=
  match S with
  | [] => true
  | _ => every k (fun u => every k (fun v =>
      let s := get S u v in
      (s <=? 0) || (0 <? get G u v) && (get G u v * one <=? s * s)))
  end.

(* From the growth at the neighbour, and at the node that Lemma 6 looks at, to the table of the
   node; records in between cost far. *)
Definition step_ok (k : nat) (r : rows) (m : option mixed) (G H : table) (far count : Z)
  (s : step) : bool :=
  heights_ok k H (heights s)
  && every k (fun x => every k (fun y =>
    let e := get (bound s) x y in
    (e <=? 0) || (x =? y)%nat && (one <=? e)
    || pair_ok k r m G (heights s) far count e (nth y (nth x (proofs s) []) Count) x y)).

(* Is E within F, wherever F bounds something? *)
Definition within (k : nat) (E F : table) : bool :=
  every k (fun x => every k (fun y =>
    let f := get F x y in (f <=? 0) || (0 <? get E x y) && (get E x y <=? f))).

Definition shaped (k : nat) (E : table) : bool :=
  (length E <=? k)%nat && forallb (fun row => (length row <=? k)%nat) E.

(* -- the nodes on one side, of a chain with one matrix ---------------------------------------- *)

(* Steps to the nodes with 1, 2, ... nodes on that side; the table from which all others start, and
   the step to them. *)
Record side := {
  early : list step;
  begin : table;
  late : step;
  capped : bool  (* whether COUNT is used by the others *)
}.

Definition ones (k : nat) : table := repeat (repeat one k) k.

Variable k : nat.
Variable c : Z.            (* above e^(1/scale) *)
Variable count : Z -> Z.   (* count n is above e^(n/scale) *)

(* before: the tables of the nodes with j, ..., 0 nodes on that side *)
Fixpoint early_ok (r : nat -> table -> rows) (m : nat -> positive -> option mixed) (j : nat)
  (before : list table) (l : list step) : bool :=
  match l with
  | [] => true
  | s :: l' =>
      let G := growth c (hd [] before) in
      shaped k (bound s)
      && (if Zpos (reach s) <=? Z.of_nat (S j) then
            let n := pred (Pos.to_nat (reach s)) in
            step_ok k (r j G) (m (j - n)%nat (reach s)) G
              (if (n =? 0)%nat then G else growth c (nth n before []))
              (count (Zpos (reach s) - 1)) (count (Z.of_nat (S j))) s
          else false)
      && early_ok r m (S j) (bound s :: before) l'
  end.

Definition tables (s : side) : list table := ones k :: map bound (early s).

(* Nodes have up to n nodes on that side. *)
Definition side_ok (r : nat -> table -> rows) (m : nat -> positive -> option mixed)
  (all_r : table -> rows) (all_m : positive -> option mixed) (n : Z) (s : side) : bool :=
  early_ok r m 0 [ones k] (early s)
  && ((n <=? Z.of_nat (length (early s)))
      || let G := growth c (begin s) in
         shaped k (begin s) && shaped k (bound (late s))
         && forallb (fun E => within k E (begin s))
              (skipn (Z.to_nat (Z.of_nat (length (tables s)) - Zpos (reach (late s)))) (tables s))
         && (0 <? count (Zpos (reach (late s)) - 1))
         && step_ok k (all_r G) (all_m (reach (late s))) G G
              (count (Zpos (reach (late s)) - 1)) (if capped s then count n else 0) (late s)
         && within k (bound (late s)) (begin s)).

Definition at_node (s : side) (n : Z) : table :=
  if n <? Z.of_nat (length (tables s)) then nth (Z.to_nat n) (tables s) [] else bound (late s).

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
    let most possible E := fold_right Z.max 0 (flat_map (fun x => map (fun y =>
      if possible x && possible y then get E x y else 0) (seq 0 k)) (seq 0 k)) in
    let known possible E := every k (fun x => every k (fun y =>
      negb (possible x) || negb (possible y) || (0 <? get E x y))) in
    known last A && known first B && (cw * most last A * most first B <=? L * one * one).

(* The nodes before which i lie, and i nodes from the other end; then all others. The values of a
   node are those of a set in a list, the last one being that of all further nodes. *)
Definition set_at (sets : list (list bool)) (n : nat) (x : nat) : bool :=
  nth x (nth n sets (last sets [])) false.
Definition sets_from (sets : list (list bool)) (n : nat) (x : nat) : bool :=
  set_at sets n x || existsb (fun s => nth x s false) (skipn n sets).

Definition nodes_ok (w cw n : Z) (sets : list (list bool)) (ahead past : side) : bool :=
  let a := length (tables ahead) in
  let b := length (tables past) in
  let good i :=
    let set j := if i <? Z.of_nat b then set_at sets (Z.to_nat (i + j)) else sets_from sets b in
    read_ok w cw (set 0) (set (w - 1)) (at_node ahead (n - i)) (at_node past i) in
  forallb (fun i => (n <? Z.of_nat i) || good (Z.of_nat i)) (seq 0 (S b))
  && forallb (fun i => (n <? Z.of_nat i) || good (n - Z.of_nat i)) (seq 0 a).

(* -- the nodes on one side, of a periodic chain ------------------------------------------------ *)

(* A table for each phase: its neighbour, one step further, has the phase next. *)
Definition no_step : step := {| bound := []; proofs := []; reach := 1; heights := [] |}.
Definition at_phase (l : list step) (p : nat) : table := bound (nth p l no_step).

Definition started (E : table) : bool :=
  every k (fun x => every k (fun y => (get E x y <=? 0) || (one <=? get E x y))).

Definition cycle_ok (N : nat) (r : nat -> rows) (next : nat -> nat) (n : Z) (capped : bool)
  (l : list step) : bool :=
  let most := if capped then count n else 0 in
  every N (fun p =>
    shaped k (at_phase l p) && started (at_phase l p)
    && step_ok k (r p) None (growth c (at_phase l (next p))) [] one most (nth p l no_step)).

Definition phases_ok (N : nat) (w cw : Z) (possible : nat -> nat -> bool)
  (ahead past : list step) : bool :=
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
  next := fun _ => true; known := fun _ => true; slack := one;
  high := map (map (fun p => up (one * Qnum p) (Zpos (Qden p)))) M;
  low := map (map (fun p => down (one * Qnum p) (Zpos (Qden p)))) M |}.

(* From the weights of the neighbour to those of the node. *)
Definition backward_rows (one : Z) (k : nat) (M : list (list Q)) (pi pi' : list Z) : rows :=
  let table round := map (fun x => map (fun z =>
    let p := at_xy M z x in round (one * (weight pi z * Qnum p)) (Zpos (Qden p) * weight pi' x))
    (seq 0 k)) (seq 0 k) in
  {| next := fun x => 0 <? weight pi x; known := fun x => 0 <? weight pi' x; slack := one;
     high := table up; low := table down |}.

Definition no_rows : rows := {|
  next := fun _ => false; known := fun _ => false; slack := 0; high := []; low := [] |}.

(* Nodes from, ..., upto (from 1) have a quilt so many steps to the left and right; bounds of the
   ratios of their own distribution, and the place of those of the left side. *)
Record quilt := { from : Z; upto : Z; to_left : option positive; to_right : option positive;
                  own : table; place : nat }.

(* Bounds of the ratios of weights so many steps away, where the node there has these values. *)
Record ratio := { away : positive; sources : list bool; ratios : table }.

(* -- certificates ----------------------------------------------------------------------------- *)

Record hints := {
  one : Z;
  halvings : nat;
  stationary : list (list Z);
  order : list (nat * nat);
  sets : list (list bool);  (* values of the first, second, ... node and of all others *)
  spreads : list Z;         (* how far the distributions of the first nodes are from stationary *)
  roots : list (positive * (table * table));  (* of powers of the matrix, from above and below *)
  ahead : side;
  past : side;
  cycle_ahead : list step;  (* instead, for periodic chains *)
  cycle_past : list step;
  capped_cycle : bool;
  quilts : list quilt;  (* instead, for Markov quilts *)
  quilts_ahead : list ratio;
  quilts_past : list ratio
}.

Definition cost (a : claim) : Q := Qinv (scale a).

(* Records of a window, and windows of the longest segment but one. *)
Definition hidden (a : claim) : Z := Z.min (window a) (longest a).
Definition others (a : claim) : Z := longest a - hidden a.

Definition exp_of (h : hints) (n : Z) (r : Q) : Z :=
  exp_up (one h) (halvings h) (n * Qnum r) (Zpos (Qden r)).

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
  {| next := fun _ => true; known := fun _ => true; slack := one;
     high := power_of up one k (high r) n; low := power_of down one k (low r) n |}.

(* -- starts ----------------------------------------------------------------------------------- *)

(* The values of the first nodes, and of those after them. *)
Fixpoint follow (m : model) (l : list (list bool)) : bool :=
  match l with
  | [] => false
  | s :: l' =>
      let s' := hd s l' in
      every (states m) (fun x => negb (nth x s false) || every (states m) (fun y =>
        (Qnum (at_xy (matrix m 0) x y) <=? 0) || nth y s' false))
      && match l' with [] => true | _ => follow m l' end
  end.

Definition sets_ok (m : model) (pi : list Z) (sets : list (list bool)) : bool :=
  every (states m) (fun x => match initial m with
    | Stationary => weight pi x <=? 0
    | Given p => Qnum (nth x p 0%Q) <=? 0
    | Any => false
    end || set_at sets 0 x)
  && follow m sets.

(* Bounds of the distributions of the first nodes, from below and above: of any start those given
   each first value. *)
Fixpoint nodes (one : Z) (k : nat) (M : rows) (lo hi : table) (n : nat) : list (table * table) :=
  match n with
  | O => []
  | S n' => (lo, hi) :: nodes one k M (product down one k lo (low M)) (product up one k hi (high
    M)) n'
  end.

Definition first_rows (one : Z) (m : model) : table * table :=
  match initial m with
  | Given p => let r := forward_rows one [p] in (low r, high r)
  | _ => let e := map (fun x => map (fun y => if (x =? y)%nat then one else 0) (seq 0 (states m)))
                      (seq 0 (states m)) in (e, e)
  end.

Definition node_at (l : list (table * table)) (n : nat) : table * table := nth n l ([], []).

(* m(x) / m(y) <= D pi(x) / pi(y) for these distributions m of a node. *)
Definition spread_ok (one : Z) (k : nat) (pi : list Z) (D : Z) (node : table * table) : bool :=
  every (length (fst node)) (fun i => every k (fun x => every k (fun y =>
    (get (snd node) i x * weight pi y) * one <=? D * (get (fst node) i y * weight pi x)))).

(* Distributions of the first nodes, the start being given. *)
Definition given_rows (one : Z) (k : nat) (M : list (list Q)) (l : list (table * table)) (n : nat)
  : rows :=
  let node := node_at l n in
  let node' := node_at l (S n) in
  let table round (t t' : table) := map (fun x => map (fun z =>
    let p := at_xy M z x in round (one * (get t 0 z * Qnum p)) (Zpos (Qden p) * get t' 0 x))
    (seq 0 k)) (seq 0 k) in
  {| next := fun x => 0 <? get (fst node) 0 x; known := fun x => 0 <? get (fst node') 0 x;
     slack := one; high := table up (snd node) (fst node');
     low := table down (fst node) (snd node') |}.

(* Lemma 7: D and D' of the node and the next, and a bound by the largest growth. *)
Definition slack_of (one : Z) (k : nat) (D D' : Z) (G : table) : Z :=
  let most := up (D * D') one in
  if every k (fun x => every k (fun y => 0 <? get G x y)) then
    let t := up (one * one + (D - one) * fold_right Z.max one (concat G)) D in
    Z.min most (up (t * t) one)
  else most.

Definition near_rows (one : Z) (k : nat) (b : rows) (D D' : Z) (G : table) : rows :=
  if (one <=? D) && (one <=? D') then
    {| next := next b; known := known b; slack := slack_of one k D D' G; high := high b;
       low := low b |}
  else no_rows.

(* -- weights ---------------------------------------------------------------------------------- *)

Definition roots_ok (one : Z) (k : nat) (M : list (list Q)) (l : list (positive * (table * table)))
  : bool :=
  forallb (fun p : positive * (table * table) =>
    let r := rows_after one k M (fst p) in
    let hi := fst (snd p) in
    let lo := snd (snd p) in
    every k (fun x => every k (fun z =>
      (0 <=? get hi x z) && (0 <=? get lo x z)
      && (get (high r) x z * one <=? get hi x z * get hi x z)
      && (get lo x z * get lo x z <=? get (low r) x z * one)))) l.

Definition mixed_of (l : list (positive * (table * table))) (turned : bool) (may : nat -> bool)
  (n : positive) : option mixed :=
  match find (fun p => (fst p =? n)%positive) l with
  | Some p =>
      let of (t : table) x z := if turned then get t z x else get t x z in
      Some {| may := may; root_up := of (fst (snd p)); root_down := of (snd (snd p)) |}
  | None => None
  end.

Definition chain_ok (a : claim) (m : model) (h : hints) : bool :=
  let k := states m in
  let M := matrix m 0 in
  let pi := weights (stationary h) 0 in
  let c := exp_of h 1 (cost a) in
  let count n := exp_of h n (cost a) in
  let L := exp_down (one h) (halvings h) (Qnum (epsilon a)) (Zpos (Qden (epsilon a))) in
  let r := forward_rows (one h) M in
  let b := backward_rows (one h) k M pi pi in
  let spread n := nth n (spreads h) 0 in
  let is_stationary := match initial m with Stationary => true | _ => false end in
  let l := nodes (one h) k r (fst (first_rows (one h) m)) (snd (first_rows (one h) m))
             (length (spreads h)) in
  let some := length (early (past h)) in
  let early_rows n G := match initial m with
    | Stationary => b
    | Given _ => given_rows (one h) k M l n
    | Any => near_rows (one h) k b (spread n) (spread (S n)) G
    end in
  let late_rows G := match initial m with
    | Stationary => b
    | _ => near_rows (one h) k b (spread some) (spread some) G
    end in
  let union x := sets_from (sets h) 0 x in
  (period m =? 1)%nat && (0 <? one h)
  && (if is_stationary then stationary_ok m (stationary h) && unique_ok m (stationary h) (order h)
      else forallb (fun D => D <=? 0) (spreads h) || stationary_ok m (stationary h))
  && every (length (spreads h)) (fun n =>
       (spread n <=? 0) || spread_ok (one h) k pi (spread n) (node_at l n))
  && sets_ok m pi (sets h) && roots_ok (one h) k M (roots h)
  && (0 <? c) && (0 <? exp_of h (hidden a) (cost a))
  && forallb (forallb (Z.leb 0)) (low r) && forallb (forallb (Z.leb 0)) (low b)
  && side_ok (one h) k c count (fun _ _ => r)
       (fun _ => mixed_of (roots h) false (fun _ => true)) (fun _ => r)
       (mixed_of (roots h) false (fun _ => true)) (others a) (ahead h)
  && side_ok (one h) k c count early_rows
       (fun n => mixed_of (roots h) true (set_at (sets h) n)) late_rows
       (mixed_of (roots h) true union) (others a) (past h)
  && nodes_ok (one h) k L (hidden a) (exp_of h (hidden a) (cost a)) (others a) (sets h)
       (ahead h) (past h).

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

(* A(x, z) <= F(x, y) A(y, z) at these values z. *)
Definition ratio_ok (one : Z) (k : nat) (high low : nat -> nat -> Z) (sources : nat -> bool)
  (F : table) : bool :=
  every k (fun x => every k (fun y =>
    let e := get F x y in
    (e <=? 0) || (x =? y)%nat && (one <=? e)
    || every k (fun z => negb (sources z) || (high x z * one <=? e * low y z)))).

Definition ratios_ok (one : Z) (k : nat) (M : list (list Q)) (turned : bool) (l : list ratio)
  : bool :=
  forallb (fun p =>
    let r := rows_after one k M (away p) in
    let of (t : table) x z := if turned then get t z x else get t x z in
    ratio_ok one k (of (high r)) (of (low r))
      (fun z => if turned then nth z (sources p) false else true) (ratios p)) l.

(* m(y) <= F(x, y) m(x) for the distributions m of the node with n nodes before it; unless it is
   the only one, of all further nodes as well. *)
Definition own_ok (one : Z) (m : model) (pi : list Z) (n : positive) (single : bool) (F : table)
  : bool :=
  let k := states m in
  let r := rows_after one k (matrix m 0) n in
  let nodes := match initial m, single with
    | Stationary, _ => ([pi], [pi])
    | Given p, true =>
        (product down one k (fst (first_rows one m)) (low r),
         product up one k (snd (first_rows one m)) (high r))
    | _, _ => (low r, high r)
    end in
  let lo := fst nodes in
  let hi := snd nodes in
  every k (fun x => every k (fun y =>
    let e := get F x y in
    (e <=? 0) || every (length lo) (fun i => get hi i y * one <=? e * get lo i x))).

Definition clipped (sets : list (list bool)) (n : Z) : nat :=
  Z.to_nat (Z.min n (Z.of_nat (length sets))).

(* The sets of the nodes from one to another. *)
Definition sets_of (sets : list (list bool)) (first last : Z) : list nat :=
  seq (clipped sets first) (S (clipped sets last) - clipped sets first).

Fixpoint covering (covered windows : Z) (l : list quilt) : bool :=
  match l with
  | [] => windows <=? covered
  | s :: l' =>
      (from s =? covered + 1) && (from s <=? upto s) && (upto s <=? windows)
      && match to_left s with None => true | Some n => Zpos n <? from s end
      && match to_right s with None => true | Some n => Zpos n <=? windows - upto s end
      && covering (upto s) windows l'
  end.

Definition no_ratio : ratio := {| away := 1; sources := []; ratios := [] |}.

Definition quilts_ok (a : claim) (m : model) (h : hints) : bool :=
  let k := states m in
  let M := matrix m 0 in
  let pi := weights (stationary h) 0 in
  let windows := others a + 1 in
  let count n := exp_of h n (cost a) in
  let L := exp_down (one h) (halvings h) (Qnum (epsilon a)) (Zpos (Qden (epsilon a))) in
  let cw := exp_of h (hidden a) (cost a) in
  let level n := repeat (repeat (count n) k) k in
  let sets := sets h in
  (period m =? 1)%nat && (0 <? one h) && (0 <? cw)
  && match initial m with
     | Stationary => stationary_ok m (stationary h) && unique_ok m (stationary h) (order h)
     | _ => true
     end
  && sets_ok m pi sets
  && ratios_ok (one h) k M false (quilts_ahead h)
  && ratios_ok (one h) k M true (quilts_past h)
  && covering 0 windows (quilts h)
  && forallb (fun s =>
       let left := nth (place s) (quilts_past h) no_ratio in
       match to_left s with
       | None => 0 <? count (upto s - 1)
       | Some n => (0 <? count (Zpos n - 1)) && (Zpos (away left) =? Zpos n)
           && match from s - 1 with
              | Zpos i => own_ok (one h) m pi i (from s =? upto s) (own s)
              | _ => false
              end
           && forallb (fun i => every k (fun z =>
                negb (set_at sets i z) || nth z (sources left) false))
                (sets_of sets (from s - 1 - Zpos n) (upto s - 1 - Zpos n))
       end
       && match to_right s with
          | None => 0 <? count (windows - from s) | Some n => 0 <? count (Zpos n - 1) end
       && forallb (fun i =>
            read_ok (one h) k L (hidden a) cw (set_at sets i)
              (set_at sets (i + Z.to_nat (Z.min (hidden a - 1) (Z.of_nat (length sets)))))
              (match to_right s with
               | None => level (windows - from s)
               | Some n => match find (fun p => (away p =? n)%positive) (quilts_ahead h) with
                   | Some p => growth (one h) (count (Zpos n - 1)) (ratios p) | None => [] end
               end)
              (match to_left s with
               | None => level (upto s - 1)
               | Some n =>
                   let E := growth (one h) (count (Zpos n - 1)) (ratios left) in
                   map (fun x => map (fun y =>
                     up (Z.max 0 (get E x y) * Z.max 0 (get (own s) x y)) (one h))
                     (seq 0 k)) (seq 0 k)
               end)) (sets_of sets (from s - 1) (upto s - 1))) (quilts h).

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
  | Stationary => if (period m =? 1)%nat then chain_ok a m h else periodic_chain_ok a m h
  | _ => chain_ok a m h
  end.

Fixpoint all_proved (a : claim) (l : list model) (hs : list hints) : bool :=
  match l, hs with
  | [], _ => true
  | m :: l', h :: hs' =>
      (match quilts h with [] => proved a m h | _ => quilts_ok a m h end) && all_proved a l' hs'
  | _, _ => false
  end.

Definition check (a : claim) (hs : list hints) (mixing_hints : hints * list Z) : bool :=
  (0 <? Qnum (scale a)) && (0 <=? Qnum (epsilon a)) && (1 <=? longest a) && (1 <=? window a)
  && forallb model_ok (family a)
  && (group_ok a || all_proved a (family a) hs
                    && forallb (fun m => mixing_ok a m (fst mixing_hints) (snd mixing_hints))
                         (mixings a)).
