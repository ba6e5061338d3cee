(* What a certificate claims, as the parser reads it. *)
From Coq Require Import Reals List Arith ZArith QArith Qreals.
From Pufferflow Require Import Sums Chains Reversal Blocks.
Import ListNotations.
Open Scope R_scope.

(* How the first record is distributed. *)
Inductive start := Stationary | Given (first : list Q) | Any.

(* A chain with a matrix for each phase of its period. *)
Record model := { matrices : list (list (list Q)); initial : start }.

(* All chains, of any values and at any time, of which the records m steps later overlap by at least
   this much, whatever the present one is, and those m steps earlier. *)
Record mixing := { apart : Z; overlap : Q }.

Record claim := {
  family : list model;
  mixings : list mixing;
  epsilon : Q;
  scale : Q;      (* the noise: c = 1 / scale *)
  longest : Z;    (* records of a segment, at most *)
  window : Z      (* consecutive records that are hidden together *)
}.

Definition period (m : model) : nat := length (matrices m).
Definition states (m : model) : nat := length (nth 0 (matrices m) []).
Definition matrix (m : model) (phase : nat) : list (list Q) :=
  nth (phase mod period m) (matrices m) [].
Definition entry (M : list (list Q)) (x y : nat) : R := Q2R (nth y (nth x M []) 0%Q).

(* Transition probabilities of a segment that begins at this phase. *)
Definition steps (m : model) (phase t x y : nat) : R := entry (matrix m (phase + t)) x y.

Definition starts (m : model) (phase : nat) (q : nat -> R) :=
  (forall x, (x < states m)%nat -> 0 <= q x) /\ sum (states m) q = 1 /\
  match initial m with
  | Any => True
  | Given p => forall x, (x < states m)%nat -> q x = Q2R (nth x p 0%Q)
  (* a period later records are distributed as at the start *)
  | Stationary => forall x, (x < states m)%nat ->
      before (states m) q (steps m phase) (period m) x = q x
  end.

Definition mixes (k : nat) (q : nat -> R) (P : nat -> nat -> nat -> R) (T m : nat) (a : R) :=
  forall t x y, (t + m < T)%nat -> (x < k)%nat -> (y < k)%nat ->
  (0 < before k q P t x -> 0 < before k q P t y ->
   a <= sum k (fun z => Rmin (power k P t m x z) (power k P t m y z))) /\
  (0 < before k q P (t + m) x -> 0 < before k q P (t + m) y ->
   a <= sum k (fun z => Rmin (before k q P t z * power k P t m z x / before k q P (t + m) x)
                             (before k q P t z * power k P t m z y / before k q P (t + m) y))).

(* Whatever window of whatever segment of whatever chain: the loss is at most epsilon. *)
Definition holds (c : claim) :=
  forall T w, (Z.of_nat T <= longest c)%Z -> (1 <= w <= T)%nat -> (Z.of_nat w <= window c)%Z ->
  (forall m, In m (family c) ->
   forall phase q, (phase < period m)%nat -> starts m phase q ->
   chain (states m) q (steps m phase) /\
   private (states m) q (steps m phase) (/ Q2R (scale c)) (Q2R (epsilon c)) T w) /\
  (forall m, In m (mixings c) ->
   forall k q P, chain k q P -> mixes k q P T (Z.to_nat (apart m)) (Q2R (overlap m)) ->
   private k q P (/ Q2R (scale c)) (Q2R (epsilon c)) T w).
