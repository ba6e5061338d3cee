(* A periodic chain in which every value leads to one root has one stationary distribution only. *)
From Coq Require Import Reals Lra Lia List Arith.
From Pufferflow Require Import Sums.
Import ListNotations.
Open Scope R_scope.

Section stationary.
Variables k N : nat.
Variable P : nat -> nat -> nat -> R.
Hypothesis P_nonneg : forall t x y, (x < k)%nat -> (y < k)%nat -> 0 <= P t x y.
Hypothesis P_sum : forall t x, (x < k)%nat -> sum k (P t x) = 1.

(* The difference of two stationary sequences of weights. *)
Variable d : nat -> nat -> R.
Hypothesis N_pos : (0 < N)%nat.
Hypothesis evolves : forall t x, (x < k)%nat -> d (S t) x = sum k (fun z => d t z * P t z x).
Hypothesis periodic : forall t x, (x < k)%nat -> d (t + N)%nat x = d t x.

Let mass t := sum k (fun x => Rabs (d t x)).

Lemma sum_abs n F : Rabs (sum n F) <= sum n (fun i => Rabs (F i)).
Proof.
  induction n as [|n IH]; simpl; [rewrite Rabs_R0; lra|].
  apply Rle_trans with (1 := Rabs_triang _ _). lra.
Qed.

Lemma abs_le t x :
  (x < k)%nat -> Rabs (d (S t) x) <= sum k (fun z => Rabs (d t z) * P t z x).
Proof.
  intros Hx. rewrite evolves by assumption. apply Rle_trans with (1 := sum_abs _ _).
  apply sum_le; intros z Hz. rewrite Rabs_mult, (Rabs_pos_eq (P t z x)); auto. lra.
Qed.

Lemma mass_next t : sum k (fun x => sum k (fun z => Rabs (d t z) * P t z x)) = mass t.
Proof.
  rewrite sum_swap. apply sum_ext; intros z Hz.
  rewrite sum_scale. change (fun i => P t z i) with (P t z). rewrite P_sum by assumption. ring.
Qed.

Lemma mass_falls t n : mass (t + n) <= mass t.
Proof.
  induction n as [|n IH].
  - rewrite Nat.add_0_r. lra.
  - rewrite Nat.add_succ_r. apply Rle_trans with (2 := IH). rewrite <- (mass_next (t + n)).
    apply sum_le; intros x Hx. now apply abs_le.
Qed.

Lemma mass_constant t : mass (S t) = mass t.
Proof.
  apply Rle_antisym.
  - rewrite <- Nat.add_1_r. apply mass_falls.
  - assert (E : mass (t + N) = mass t).
    { apply sum_ext; intros x Hx. now rewrite periodic. }
    rewrite <- E. replace (t + N)%nat with (S t + (N - 1))%nat by lia. apply mass_falls.
Qed.

(* Nothing cancels, so what leads to a zero is zero. *)
Lemma zero_before t z x :
  (z < k)%nat -> (x < k)%nat -> d (S t) x = 0 -> 0 < P t z x -> d t z = 0.
Proof.
  intros Hz Hx D Pos.
  assert (A : sum k (fun y => Rabs (d t y) * P t y x) = 0).
  { assert (Gap : forall y, (y < k)%nat ->
      0 <= sum k (fun v => Rabs (d t v) * P t v y) - Rabs (d (S t) y)).
    { intros y Hy. pose proof (abs_le t y Hy). lra. }
    assert (Zero : sum k (fun y => sum k (fun v => Rabs (d t v) * P t v y)
                                   + - 1 * Rabs (d (S t) y)) = 0).
    { rewrite sum_plus, sum_scale, mass_next. fold (mass (S t)). rewrite mass_constant. ring. }
    apply (sum_zero_terms k) with (i := x) in Zero; auto.
    - rewrite D, Rabs_R0 in Zero. lra.
    - intros y Hy. specialize (Gap y Hy). lra. }
  apply (sum_zero_terms k) with (i := z) in A; auto.
  - destruct (Req_dec (d t z) 0) as [|Ne]; [assumption|].
    apply Rabs_pos_lt in Ne. pose proof (Rmult_lt_0_compat _ _ Ne Pos). lra.
  - intros y Hy. apply Rmult_le_pos; [apply Rabs_pos|auto].
Qed.

Lemma periodic_many j t x : (x < k)%nat -> d (t + j * N)%nat x = d t x.
Proof.
  intros Hx; induction j as [|j IH]; simpl; [now rewrite Nat.add_0_r|].
  replace (t + (N + j * N))%nat with (t + j * N + N)%nat by lia. now rewrite periodic.
Qed.

Lemma same_phase phase t u x :
  (x < k)%nat -> ((phase + t) mod N = (phase + u) mod N)%nat -> d t x = d u x.
Proof.
  intros Hx E.
  assert (A := Nat.div_mod (phase + t) N ltac:(lia)).
  assert (B := Nat.div_mod (phase + u) N ltac:(lia)). rewrite E in A.
  destruct (Nat.le_ge_cases t u).
  - replace u with (t + ((phase + u) / N - (phase + t) / N) * N)%nat
      by (rewrite Nat.mul_sub_distr_r; lia).
    symmetry; now apply periodic_many.
  - replace t with (u + ((phase + t) / N - (phase + u) / N) * N)%nat
      by (rewrite Nat.mul_sub_distr_r; lia).
    now apply periodic_many.
Qed.
End stationary.
