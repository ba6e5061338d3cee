(* Several steps at once (Theorem 5): the records in between cost e^c each, the node m steps away
   reveals what its distribution given the node does. *)
From Coq Require Import Reals Lra Lia List Arith.
From Pufferflow Require Import Sums Chains Sides Reversal.
Import ListNotations.
Open Scope R_scope.

(* The largest value of H below n, or 0. *)
Fixpoint top (n : nat) (H : nat -> R) : R :=
  match n with O => 0 | S m => Rmax (top m H) (H m) end.

Lemma top_ge n H i : (i < n)%nat -> H i <= top n H.
Proof.
  induction n as [|n IH]; intros Hi; [lia|]. simpl.
  destruct (Nat.eq_dec i n) as [->|]; [apply Rmax_r|].
  apply Rle_trans with (2 := Rmax_l _ _). apply IH. lia.
Qed.

Lemma top_le n H b : 0 <= b -> (forall i, (i < n)%nat -> H i <= b) -> top n H <= b.
Proof.
  induction n as [|n IH]; intros Hb A; simpl; [assumption|]. apply Rmax_lub; auto with arith.
Qed.

Section block.
Variable k : nat.

(* The largest value of G over all records in between. *)
Fixpoint largest (m : nat) (G : list nat -> R) : R :=
  match m with O => G [] | S i => top k (fun x => largest i (fun v => G (x :: v))) end.

Lemma largest_ge m : forall G v, length v = m -> below k v -> G v <= largest m G.
Proof.
  induction m as [|m IH]; intros G [|x v] Lv B; try discriminate; simpl; [lra|].
  inversion B; subst. apply Rle_trans with (largest m (fun v => G (x :: v))).
  - apply (IH (fun v => G (x :: v))); auto.
  - now apply (top_ge k (fun x => largest m (fun v => G (x :: v)))).
Qed.

Lemma largest_le m : forall G b, 0 <= b ->
  (forall v, length v = m -> below k v -> G v <= b) -> largest m G <= b.
Proof.
  induction m as [|m IH]; intros G b Hb A; simpl; [apply A; [reflexivity|constructor]|].
  apply top_le; [assumption|]. intros x Hx. apply IH; [assumption|]. intros v Lv Bv.
  apply A; [simpl; congruence|now constructor].
Qed.

Variable C : R.
Hypothesis C1 : 1 <= C.
Variable K : nat -> nat -> nat -> R.
Hypothesis K_nonneg : forall n x z, (x < k)%nat -> (z < k)%nat -> 0 <= K n x z.
Variable mass : nat -> nat -> R.

(* E[F(the value of the node m steps away) | x]; n nodes lie beyond that one. *)
Fixpoint through (m n x : nat) (F : nat -> R) : R :=
  match m with
  | O => F x
  | S i => sum k (fun y => K (i + n) x y * through i n y F)
  end.

Lemma through_nonneg n F m : forall x, (x < k)%nat -> (forall z, (z < k)%nat -> 0 <= F z) ->
  0 <= through m n x F.
Proof.
  induction m as [|m IH]; intros x Hx HF; simpl; [now apply HF|].
  apply sum_nonneg; intros z Hz. apply Rmult_le_pos; auto.
Qed.

Lemma through_above n F m : forall x g, (x < k)%nat ->
  (forall v z, length v = m -> below k v -> (z < k)%nat ->
    beyond k K n z (fun r => g (v ++ z :: r)) <= F z) ->
  beyond k K (S m + n) x g <= through (S m) n x F.
Proof.
  induction m as [|m IH]; intros x g Hx A.
  - simpl. apply sum_le; intros z Hz. apply Rmult_le_compat_l; [now apply K_nonneg|].
    apply (A [] z); [reflexivity|constructor|assumption].
  - change (beyond k K (S (S m) + n) x g)
      with (sum k (fun y => K (S m + n) x y * beyond k K (S m + n) y (fun r => g (y :: r)))).
    change (through (S (S m)) n x F)
      with (sum k (fun y => K (S m + n) x y * through (S m) n y F)).
    apply sum_le; intros y Hy. apply Rmult_le_compat_l; [now apply K_nonneg|].
    apply IH; [assumption|]. intros v z Lv Bv Hz.
    apply (A (y :: v)); [simpl; congruence|now constructor|assumption].
Qed.

Lemma through_below n F D m : forall x g, (x < k)%nat ->
  (forall v z, length v = m -> below k v -> (z < k)%nat ->
    F z <= D * beyond k K n z (fun r => g (v ++ z :: r))) ->
  through (S m) n x F <= D * beyond k K (S m + n) x g.
Proof.
  induction m as [|m IH]; intros x g Hx A.
  - simpl. rewrite <- sum_scale. apply sum_le; intros z Hz.
    rewrite <- Rmult_assoc, (Rmult_comm D), Rmult_assoc.
    apply Rmult_le_compat_l; [now apply K_nonneg|].
    apply (A [] z); [reflexivity|constructor|assumption].
  - change (beyond k K (S (S m) + n) x g)
      with (sum k (fun y => K (S m + n) x y * beyond k K (S m + n) y (fun r => g (y :: r)))).
    change (through (S (S m)) n x F)
      with (sum k (fun y => K (S m + n) x y * through (S m) n y F)).
    rewrite <- sum_scale. apply sum_le; intros y Hy.
    rewrite <- Rmult_assoc, (Rmult_comm D), Rmult_assoc.
    apply Rmult_le_compat_l; [now apply K_nonneg|].
    apply IH; [assumption|]. intros v z Lv Bv Hz.
    apply (A (y :: v)); [simpl; congruence|now constructor|assumption].
Qed.

(* What lies beyond the node m + 1 steps away grows as its table says; m records are in between. *)
Theorem block m n E g : bounds k C K mass n E -> lipschitz C g ->
  exists F, growing k (mass n) (fun z y => C * E z y) F /\ forall x, (x < k)%nat ->
    beyond k K (S m + n) x g <= through (S m) n x F /\
    through (S m) n x F <= C ^ m * beyond k K (S m + n) x g.
Proof.
  intros B L. assert (C0 : 0 <= C) by lra.
  pose (G := fun z v => beyond k K n z (fun r => g (v ++ z :: r))).
  assert (Gp : forall z v, (z < k)%nat -> 0 <= G z v)
    by (intros; apply beyond_nonneg; auto; intro; apply L).
  assert (Lv : forall v, lipschitz C (fun s => g (v ++ s))).
  { intros v; split; [intro; apply L|]. intros l x y r. rewrite !app_assoc. apply (proj2 L). }
  pose (F := fun z => largest m (G z)).
  assert (Fp : forall z, (z < k)%nat -> 0 <= F z).
  { intros z Hz. unfold F. apply Rle_trans with (G z (repeat z m)); [now apply Gp|].
    apply largest_ge; [apply repeat_length|]. apply Forall_forall. intros y Hy.
    apply repeat_spec in Hy. now subst. }
  exists F. split; [split; [assumption|]|].
  - intros z y Hz Hy Mz My Pos.
    assert (Pe : 0 < E z y) by (destruct (Rlt_le_dec 0 (E z y)); [assumption|nra]).
    apply largest_le; [apply Rmult_le_pos; [lra|auto]|]. intros v Lev Bv.
    apply Rle_trans with (C * E z y * G y v).
    + unfold G. destruct (step_growing k C C1 K K_nonneg mass n E (fun s => g (v ++ s)) B (Lv v))
        as [_ H]. exact (H z y Hz Hy Mz My Pos).
    + apply Rmult_le_compat_l; [lra|]. now apply largest_ge.
  - intros x Hx. split.
    + apply through_above; [assumption|]. intros v z Lev Bv Hz. unfold F.
      apply (largest_ge m (G z)); assumption.
    + apply through_below; [assumption|]. intros v z Lev Bv Hz. unfold F.
      fold (G z v). apply largest_le.
      * apply Rmult_le_pos; [now apply pow_le|now apply Gp].
      * intros u Lu Bu. unfold G. rewrite <- beyond_scale. apply beyond_le; auto.
        intros r _. rewrite <- Lu. apply (swap C g C0 L u v [] (z :: r)). congruence.
Qed.
End block.

(* Where the node m steps away is, in a chain. *)
Section power.
Variable k : nat.
Variable P : nat -> nat -> nat -> R.

(* P(the value z, m steps after the value x at time t) *)
Fixpoint power (t m x z : nat) : R :=
  match m with
  | O => if (x =? z)%nat then 1 else 0
  | S i => sum k (fun y => power t i x y * P (t + i)%nat y z)
  end.

Lemma sum_one F x : (x < k)%nat -> sum k (fun y => (if (x =? y)%nat then 1 else 0) * F y) = F x.
Proof.
  intros Hx.
  assert (A : forall n, sum n (fun y => (if (x =? y)%nat then 1 else 0) * F y)
    = if (x <? n)%nat then F x else 0).
  { induction n as [|n IH]; [reflexivity|]. simpl sum. rewrite IH.
    destruct (Nat.eqb_spec x n) as [E|Ne], (Nat.ltb_spec x n), (Nat.ltb_spec x (S n));
      try lia; try (rewrite E); ring. }
  rewrite A. apply Nat.ltb_lt in Hx. now rewrite Hx.
Qed.

Lemma power_first m : forall t x z, (x < k)%nat -> (z < k)%nat ->
  power t (S m) x z = sum k (fun y => P t x y * power (S t) m y z).
Proof.
  induction m as [|m IH]; intros t x z Hx Hz.
  - cbn [power]. rewrite Nat.add_0_r, sum_one by assumption.
    rewrite (sum_ext k _ (fun y => (if (z =? y)%nat then 1 else 0) * P t x y)).
    + now rewrite sum_one.
    + intros y _. rewrite Nat.eqb_sym. ring.
  - change (power t (S (S m)) x z)
      with (sum k (fun y => power t (S m) x y * P (t + S m)%nat y z)).
    rewrite (sum_ext k _ (fun y => sum k (fun w => P t x w * power (S t) m w y * P (t + S m)%nat y
      z))).
    + rewrite sum_swap. apply sum_ext; intros w Hw. cbn [power]. rewrite <- sum_scale.
      apply sum_ext; intros y Hy. replace (S t + m)%nat with (t + S m)%nat by lia. ring.
    + intros y Hy. rewrite IH by assumption. rewrite Rmult_comm, <- sum_scale.
      apply sum_ext; intros; ring.
Qed.

Lemma power_nonneg m : (forall t x y, (x < k)%nat -> (y < k)%nat -> 0 <= P t x y) ->
  forall t x z, (x < k)%nat -> (z < k)%nat -> 0 <= power t m x z.
Proof.
  intros H. induction m as [|m IH]; intros t x z Hx Hz; cbn [power].
  - destruct (x =? z)%nat; lra.
  - apply sum_nonneg; intros y Hy. apply Rmult_le_pos; auto.
Qed.

Lemma power_app m n : forall t x z, (x < k)%nat -> (z < k)%nat ->
  power t (m + n) x z = sum k (fun y => power t m x y * power (t + m) n y z).
Proof.
  induction n as [|n IH]; intros t x z Hx Hz.
  - rewrite Nat.add_0_r. cbn [power].
    rewrite (sum_ext k _ (fun y => (if (z =? y)%nat then 1 else 0) * power t m x y)).
    + now rewrite sum_one.
    + intros y _. rewrite Nat.eqb_sym. ring.
  - rewrite Nat.add_succ_r. cbn [power].
    rewrite (sum_ext k (fun y => power t m x y * sum k (fun v => power (t + m) n y v
      * P (t + m + n)%nat v z)) (fun y => sum k (fun v => power t m x y * power (t + m) n y v
      * P (t + m + n)%nat v z))).
    + rewrite sum_swap. apply sum_ext; intros v Hv. rewrite IH by assumption.
      rewrite (Rmult_comm (sum _ _)), <- sum_scale.
      apply sum_ext; intros. rewrite Nat.add_assoc. ring.
    + intros y Hy. rewrite <- sum_scale. apply sum_ext; intros; ring.
Qed.

Lemma power_same m : (forall t, P t = P 0%nat) -> forall t, power t m = power 0 m.
Proof.
  intros H t. assert (A : forall t x z, power t m x z = power 0 m x z).
  { clear t. induction m as [|n IH]; intros t x z; [reflexivity|]. cbn [power].
    apply sum_ext; intros y _. now rewrite IH, (H (t + n)%nat), (H (0 + n)%nat). }
  apply FunctionalExtensionality.functional_extensionality; intros x.
  apply FunctionalExtensionality.functional_extensionality; intros z. apply A.
Qed.

Variable q : nat -> R.
Hypothesis Ch : chain k q P.

Lemma forward_through T n m : forall t x F, (x < k)%nat -> (t + m + n)%nat = (T - 1)%nat ->
  (forall i x z, (x < k)%nat -> (z < k)%nat -> forward k P T i x z = P (T - 2 - i)%nat x z) ->
  through k (forward k P T) m n x F = sum k (fun z => power t m x z * F z).
Proof.
  induction m as [|m IH]; intros t x F Hx Ht E.
  - simpl. now rewrite sum_one.
  - rewrite (sum_ext k (fun z => power t (S m) x z * F z)
      (fun z => sum k (fun y => P t x y * (power (S t) m y z * F z)))).
    + rewrite sum_swap. simpl through. apply sum_ext; intros y Hy.
      rewrite (IH (S t)) by (auto; lia). rewrite E by assumption.
      replace (T - 2 - (m + n))%nat with t by lia. now rewrite sum_scale.
    + intros z Hz. rewrite power_first by assumption.
      rewrite Rmult_comm, <- sum_scale. apply sum_ext; intros; ring.
Qed.

Lemma backward_through n m : forall x F, (x < k)%nat ->
  before k q P (m + n) x * through k (backward k q P) m n x F
  = sum k (fun z => before k q P n z * power n m z x * F z).
Proof.
  assert (Bn := fun i x => before_nonneg k q P (proj1 Ch) (proj1 (proj2 (proj2 Ch))) i x).
  induction m as [|m IH]; intros x F Hx.
  - simpl. rewrite (sum_ext k _ (fun z => (if (x =? z)%nat then 1 else 0)
      * (before k q P n z * F z))).
    + now rewrite sum_one.
    + intros z _. rewrite Nat.eqb_sym. ring.
  - cbn [through]. rewrite <- sum_scale.
    transitivity (sum k (fun y => P (m + n)%nat y x
      * sum k (fun z => before k q P n z * power n m z y * F z))).
    + apply sum_ext; intros y Hy. rewrite <- IH by assumption. unfold backward.
      replace (S m + n)%nat with (S (m + n)) by lia.
      rewrite <- Rmult_assoc, (share (before k q P (m + n) y * P (m + n)%nat y x)); [ring|].
      intros Z. cbn [before] in Z. apply (sum_zero_terms k) with (i := y) in Z; auto.
      intros z Hz. apply Rmult_le_pos; [auto|now apply Ch].
    + rewrite (sum_ext k (fun z => before k q P n z * power n (S m) z x * F z)
        (fun z => sum k (fun y => P (m + n)%nat y x * (before k q P n z * power n m z y * F z)))).
      * rewrite sum_swap. apply sum_ext; intros y Hy. now rewrite sum_scale.
      * intros z Hz. cbn [power]. rewrite Rmult_assoc, (Rmult_comm (sum _ _)), <- Rmult_assoc.
        rewrite <- sum_scale. apply sum_ext; intros y Hy.
        replace (n + m)%nat with (m + n)%nat by lia. ring.
Qed.
End power.
