(* What is proved: how much an output of a mechanism reveals about the records of a Markov chain.

   Records have values 0, ..., k - 1. A mechanism is known only by c: whatever its output, its
   probability (or density) changes by at most the factor e^c when one record changes. A secret is
   the values of a window of consecutive records. *)
From Coq Require Import Reals List.
From Pufferflow Require Import Sums.
Import ListNotations.
Open Scope R_scope.

(* The probability f s of one output (or one set of outputs) given the records s. *)
Definition mechanism (c : R) (f : list nat -> R) :=
  (forall s, 0 <= f s) /\
  (forall l x y r, f (l ++ x :: r) <= exp c * f (l ++ y :: r)).

Section chain.
Variable k : nat.                     (* number of values *)
Variable q : nat -> R.                (* distribution of the first record *)
Variable P : nat -> nat -> nat -> R.  (* P t x y: probability that y follows x at time t *)

Fixpoint path (t x : nat) (s : list nat) : R :=
  match s with [] => 1 | y :: r => P t x y * path (S t) y r end.

Definition prob (s : list nat) : R :=
  match s with [] => 1 | x :: r => q x * path 0 x r end.

(* E[f 1{i records, then those of u, then j records}]: for f = 1 the probability of the secret. *)
Definition expect (i j : nat) (u : list nat) (f : list nat -> R) : R :=
  total k i (fun l => total k j (fun r => prob (l ++ u ++ r) * f (l ++ u ++ r))).

(* E[f | u] <= e^eps E[f | u'] for all windows of w among T records, written without division. *)
Definition private (c eps : R) (T w : nat) :=
  forall f, mechanism c f ->
  forall i j u u', (i + w + j = T)%nat -> length u = w -> length u' = w -> below k u ->
    below k u' ->
  expect i j u f * expect i j u' (fun _ => 1)
  <= exp eps * (expect i j u' f * expect i j u (fun _ => 1)).
End chain.

(* As a quotient: an output is at most e^eps times as probable given one secret as given another. *)
Definition chain (k : nat) (q : nat -> R) (P : nat -> nat -> nat -> R) :=
  (forall x, (x < k)%nat -> 0 <= q x) /\ sum k q = 1 /\
  (forall t x y, (x < k)%nat -> (y < k)%nat -> 0 <= P t x y) /\
  (forall t x, (x < k)%nat -> sum k (P t x) = 1).

Lemma private_quotient k q P c eps T w :
  private k q P c eps T w ->
  forall f, mechanism c f ->
  forall i j u u', (i + w + j = T)%nat -> length u = w -> length u' = w -> below k u ->
    below k u' ->
  0 < expect k q P i j u (fun _ => 1) -> 0 < expect k q P i j u' (fun _ => 1) ->
  expect k q P i j u f / expect k q P i j u (fun _ => 1)
  <= exp eps * (expect k q P i j u' f / expect k q P i j u' (fun _ => 1)).
Proof.
  intros H f Hf i j u u' E Lu Lu' Bu Bu' Pu Pu'.
  specialize (H f Hf i j u u' E Lu Lu' Bu Bu').
  apply Rmult_le_reg_r with (1 := Pu). apply Rmult_le_reg_r with (1 := Pu').
  replace (_ / _ * _ * _) with (expect k q P i j u f * expect k q P i j u' (fun _ => 1))
    by (field; apply Rgt_not_eq; assumption).
  replace (_ * (_ / _) * _ * _)
    with (exp eps * (expect k q P i j u' f * expect k q P i j u (fun _ => 1)))
    by (field; apply Rgt_not_eq; assumption).
  exact H.
Qed.
