(* A node of a chain seen from both sides.

   Given a window, the records before and after it are independent, and both are chains: the first
   one reversed in time. So what the window reveals is at most what its own records, the past of its
   first and the future of its last one reveal (Lemma 1 and Theorem W1 of docs/leakage.md).
   W may be any weights >= 0: the factors of known records may be part of them. *)
From Coq Require Import Reals Lra Lia List Arith.
From Pufferflow Require Import Sums Chains Sides.
Import ListNotations.
Open Scope R_scope.

Section weights.
Variable k : nat.
Variable q : nat -> R.
Variable W : nat -> nat -> nat -> R.
Variable T : nat.
Hypothesis q_nonneg : forall x, (x < k)%nat -> 0 <= q x.
Hypothesis W_nonneg : forall t x y, (x < k)%nat -> (y < k)%nat -> 0 <= W t x y.

(* Weight of all records up to one at time i with value x; of all n records after one with value x
   if the last one has time T - 1. *)
Fixpoint before (i x : nat) : R :=
  match i with O => q x | S j => sum k (fun z => before j z * W j z x) end.

Fixpoint after (n x : nat) : R :=
  match n with O => 1 | S m => sum k (fun z => W (T - 2 - m)%nat x z * after m z) end.

(* Conditional distributions of the neighbours. *)
Definition backward (n x z : nat) : R := before n z * W n z x / before (S n) x.
Definition forward (n x z : nat) : R := W (T - 2 - n)%nat x z * after n z / after (S n) x.

Lemma before_nonneg i x : (x < k)%nat -> 0 <= before i x.
Proof.
  revert x; induction i as [|i IH]; intros x Hx; simpl; [auto|].
  apply sum_nonneg; intros z Hz. apply Rmult_le_pos; auto.
Qed.

Lemma after_nonneg n x : (x < k)%nat -> 0 <= after n x.
Proof.
  revert x; induction n as [|n IH]; intros x Hx; simpl; [lra|].
  apply sum_nonneg; intros z Hz. apply Rmult_le_pos; auto.
Qed.

Lemma div_nonneg a b : 0 <= a -> 0 <= b -> 0 <= a / b.
Proof.
  intros Ha [Hb|<-]; unfold Rdiv.
  - apply Rmult_le_pos; auto. apply Rlt_le, Rinv_0_lt_compat; auto.
  - rewrite Rinv_0; lra.
Qed.

Lemma backward_nonneg n x z : (x < k)%nat -> (z < k)%nat -> 0 <= backward n x z.
Proof.
  intros; apply div_nonneg; [apply Rmult_le_pos; auto|]; apply before_nonneg; auto.
Qed.

Lemma forward_nonneg n x z : (x < k)%nat -> (z < k)%nat -> 0 <= forward n x z.
Proof.
  intros; apply div_nonneg; [apply Rmult_le_pos; auto|]; apply after_nonneg; auto.
Qed.

(* a / b times b is a, if b = 0 is a sum of which a is a term *)
Lemma share a b : (b = 0 -> a = 0) -> b * (a / b) = a.
Proof. intros H. destruct (Req_dec b 0) as [->|]; [rewrite H; auto; lra|field; auto]. Qed.

Lemma forward_sum n : forall t x g, (t + 1 + n)%nat = T -> (x < k)%nat ->
  total k n (fun r => path W t x r * g r) = after n x * beyond k forward n x g.
Proof.
  induction n as [|n IH]; intros t x g Ht Hx; cbn [total beyond]; [simpl; ring|].
  rewrite <- sum_scale. apply sum_ext; intros z Hz. simpl path.
  transitivity (W t x z * (after n z * beyond k forward n z (fun r => g (z :: r)))).
  - rewrite <- (IH (S t)) by (auto; lia). rewrite <- total_scale.
    apply total_ext; intros; ring.
  - unfold forward. replace (T - 2 - n)%nat with t by lia.
    rewrite <- (Rmult_assoc (after (S n) x)), share; [ring|].
    simpl. replace (T - 2 - n)%nat with t by lia. intros Z.
    apply (sum_zero_terms k) with (i := z) in Z; auto.
    intros; apply Rmult_le_pos; [auto|apply after_nonneg; auto].
Qed.

Lemma path_app t x l y r :
  path W t x (l ++ y :: r) = path W t x (l ++ [y]) * path W (t + length l + 1) y r.
Proof.
  revert t x; induction l as [|a l IH]; intros t x; simpl.
  - replace (t + 0 + 1)%nat with (S t) by lia. ring.
  - rewrite IH. replace (S t + length l + 1)%nat with (t + S (length l) + 1)%nat by lia. ring.
Qed.

Lemma prob_app l x r : prob q W (l ++ x :: r) = prob q W (l ++ [x]) * path W (length l) x r.
Proof.
  destruct l as [|a l]; simpl; [ring|]. rewrite path_app, Rmult_assoc.
  replace (0 + length l + 1)%nat with (S (length l)) by lia. ring.
Qed.

Lemma backward_sum n : forall x g, (x < k)%nat ->
  total k n (fun l => prob q W (l ++ [x]) * g (rev l)) = before n x * beyond k backward n x g.
Proof.
  induction n as [|n IH]; intros x g Hx; [simpl; ring|].
  rewrite total_last. cbn [beyond]. rewrite <- sum_scale. apply sum_ext; intros z Hz.
  transitivity (W n z x * (before n z * beyond k backward n z (fun r => g (z :: r)))).
  - rewrite <- (IH z (fun r => g (z :: r)) Hz), <- total_scale.
    apply total_ext; intros s Ls _.
    rewrite <- app_assoc. simpl app. rewrite prob_app, rev_app_distr, Ls. simpl. ring.
  - unfold backward. rewrite <- (Rmult_assoc (before (S n) x)), share; [ring|].
    intros Z. apply (sum_zero_terms k) with (i := z) in Z; auto.
    intros; apply Rmult_le_pos; [apply before_nonneg|]; auto.
Qed.

Lemma backward_sums_to_1 n x : (x < k)%nat -> 0 < before n x -> sums_to_1 k backward n x.
Proof.
  intros Hx Pos. unfold sums_to_1.
  apply Rmult_eq_reg_l with (before n x); [|lra].
  rewrite <- backward_sum by assumption. rewrite Rmult_1_r. clear Pos.
  revert x Hx; induction n as [|n IH]; intros x Hx; [simpl; ring|].
  rewrite total_last. simpl. apply sum_ext; intros z Hz. rewrite <- IH by assumption.
  rewrite Rmult_comm, <- total_scale. apply total_ext; intros s Ls _.
  rewrite <- app_assoc. simpl app. rewrite prob_app, Ls. simpl. ring.
Qed.

Lemma forward_sums_to_1 n x :
  (n < T)%nat -> (x < k)%nat -> 0 < after n x -> sums_to_1 k forward n x.
Proof.
  intros Hn Hx Pos. unfold sums_to_1.
  apply Rmult_eq_reg_l with (after n x); [|lra].
  rewrite <- (forward_sum n (T - 1 - n)) by (auto; lia). rewrite Rmult_1_r. clear Pos.
  assert (forall t, (t + 1 + n)%nat = T -> total k n (fun r => path W t x r * 1) = after n x) as A.
  { clear Hn; revert x Hx; induction n as [|n IH]; intros x Hx t Ht; simpl; [ring|].
    apply sum_ext; intros z Hz. rewrite <- (IH z Hz (S t)) by lia.
    replace (T - 2 - n)%nat with t by lia. rewrite <- total_scale.
    apply total_ext; intros; ring. }
  apply A. lia.
Qed.

(* A secret that begins with x, ends with z and has weight v within. *)
Lemma split l x v r : forall z, last (x :: v) 0%nat = z ->
  prob q W (l ++ (x :: v) ++ r)
  = prob q W (l ++ [x]) * path W (length l) x v * path W (length l + length v) z r.
Proof.
  intros z Hz. simpl app. rewrite prob_app, Rmult_assoc. f_equal.
  revert x z Hz. generalize (length l) as t. induction v as [|y v IH]; intros t x z Hz; simpl.
  - simpl in Hz; subst. replace (t + 0)%nat with t by lia. ring.
  - rewrite (IH (S t) y z) by exact Hz.
    replace (S t + length v)%nat with (t + S (length v))%nat by lia. ring.
Qed.

Lemma last_below u : u <> [] -> below k u -> (last u 0 < k)%nat.
Proof.
  intros N B; unfold below in B; rewrite Forall_forall in B; apply B.
  rewrite (app_removelast_last 0%nat N) at 2. apply in_or_app; right; now left.
Qed.

Lemma expect_split i j x v f :
  (i + S (length v) + j)%nat = T -> below k (x :: v) ->
  let z := last (x :: v) 0%nat in
  expect k q W i j (x :: v) f
  = before i x * path W i x v * after j z
    * beyond k backward i x
        (fun l => beyond k forward j z (fun r => f (rev l ++ (x :: v) ++ r))).
Proof.
  intros HT B z.
  assert (Hz : (z < k)%nat) by (apply last_below; [discriminate|assumption]).
  assert (Hx : (x < k)%nat) by (now inversion B).
  unfold expect.
  transitivity (total k i (fun l => path W i x v * after j z
     * (prob q W (l ++ [x])
        * beyond k forward j z (fun r => f (rev (rev l) ++ (x :: v) ++ r))))).
  - apply total_ext; intros l Ll _. rewrite rev_involutive.
    transitivity (prob q W (l ++ [x]) * path W i x v
      * total k j (fun r => path W (i + length v) z r * f (l ++ (x :: v) ++ r))).
    + rewrite <- total_scale. apply total_ext; intros r _ _.
      rewrite (split l x v r z eq_refl), Ll. ring.
    + rewrite forward_sum by (auto; lia). ring.
  - rewrite total_scale.
    rewrite (backward_sum i x (fun l => beyond k forward j z (fun r => f (rev l ++ (x :: v) ++ r))))
      by assumption. ring.
Qed.

(* READ: the loss of a window is at most that of its own records, of its last one through the
   records after, and of its first one through those before. *)
Section read.
Variables C : R.
Hypothesis C1 : 1 <= C.
Variables i j : nat.
Variables A B : nat -> nat -> R.
Hypothesis A_bounds : bounds k C forward after j A.
Hypothesis B_bounds : bounds k C backward before i B.

Theorem read f x v x' v' L :
  (i + S (length v) + j)%nat = T -> length v = length v' ->
  below k (x :: v) -> below k (x' :: v') -> lipschitz C f ->
  let z := last (x :: v) 0%nat in
  let z' := last (x' :: v') 0%nat in
  (0 < before i x -> 0 < before i x' -> 0 < path W i x v -> 0 < path W i x' v' ->
   0 < after j z -> 0 < after j z' ->
   0 < A z z' /\ 0 < B x x' /\ C ^ S (length v) * A z z' * B x x' <= L) ->
  expect k q W i j (x :: v) f * expect k q W i j (x' :: v') (fun _ => 1)
  <= L * (expect k q W i j (x' :: v') f * expect k q W i j (x :: v) (fun _ => 1)).
Proof.
  intros HT Lv Bu Bu' Lf z z' H.
  assert (Hx : (x < k)%nat) by (now inversion Bu).
  assert (Hx' : (x' < k)%nat) by (now inversion Bu').
  assert (Hz : (z < k)%nat) by (apply last_below; [discriminate|assumption]).
  assert (Hz' : (z' < k)%nat) by (apply last_below; [discriminate|assumption]).
  rewrite !expect_split by (auto; lia). fold z z'.
  set (S1 := before i x * path W i x v * after j z).
  set (S2 := before i x' * path W i x' v' * after j z').
  assert (path_nonneg : forall s t y, (y < k)%nat -> below k s -> 0 <= path W t y s).
  { induction s as [|a s IH]; intros t y Hy Hs; simpl; [lra|]. inversion Hs; subst.
    apply Rmult_le_pos; auto. }
  assert (Bv : below k v) by (now inversion Bu). assert (Bv' : below k v') by (now inversion Bu').
  assert (N1 := before_nonneg i x Hx). assert (N2 := path_nonneg v i x Hx Bv).
  assert (N3 := after_nonneg j z Hz). assert (N4 := before_nonneg i x' Hx').
  assert (N5 := path_nonneg v' i x' Hx' Bv'). assert (N6 := after_nonneg j z' Hz').
  assert (P1 : 0 <= S1) by (unfold S1; auto using Rmult_le_pos).
  assert (P2 : 0 <= S2) by (unfold S2; auto using Rmult_le_pos).
  destruct P1 as [P1|<-]; [|lra]. destruct P2 as [P2|<-]; [|lra].
  assert (pos : forall a b c, 0 <= a -> 0 <= b -> 0 <= c -> 0 < a * b * c ->
    0 < a /\ 0 < b /\ 0 < c).
  { intros a b c [?|<-] [?|<-] [?|<-] Q; try (exfalso; lra); auto. }
  destruct (pos _ _ _ N1 N2 N3 P1) as (M1 & M2 & M3).
  destruct (pos _ _ _ N4 N5 N6 P2) as (M4 & M5 & M6).
  destruct (H M1 M4 M2 M5 M3 M6) as (HA & HB & HL). clear H pos.
  assert (One : forall y y', (y < k)%nat -> (y' < k)%nat -> 0 < before i y -> 0 < after j y' ->
    beyond k backward i y (fun _ => beyond k forward j y' (fun _ => 1)) = 1).
  { intros y y' Hy Hy' By Ay.
    assert (n_T : (j < T)%nat) by lia.
    rewrite (forward_sums_to_1 j y' n_T Hy' Ay). now apply backward_sums_to_1. }
  rewrite (One x z), (One x' z') by assumption. clear One.
  set (Z := fun y v w l => beyond k forward j w (fun r => f (rev l ++ (y :: v) ++ r))).
  fold (Z x v z) (Z x' v' z').
  assert (fwd := forward_nonneg). assert (bwd := backward_nonneg).
  assert (Cn : 0 <= C ^ S (length v)) by (apply pow_le; lra).
  assert (Main : beyond k backward i x (Z x v z)
    <= C ^ S (length v) * A z z' * (B x x' * beyond k backward i x' (Z x' v' z'))).
  { apply Rle_trans with
      (beyond k backward i x (fun l => C ^ S (length v) * A z z' * Z x' v' z' l)).
    - apply beyond_le; auto. intros l _. unfold Z. rewrite Rmult_assoc.
      apply Rle_trans with (C ^ S (length v)
        * beyond k forward j z (fun r => f (rev l ++ (x' :: v') ++ r))).
      + rewrite <- beyond_scale. apply beyond_le; auto. intros r _.
        assert (C0 : 0 <= C) by lra.
        apply (swap C f C0 Lf (x :: v) (x' :: v') (rev l) r). simpl; congruence.
      + apply Rmult_le_compat_l; [assumption|]. apply A_bounds; auto.
        split; [intro; apply Lf|]. intros m a b s.
        rewrite !(app_assoc (rev l)), !(app_assoc (rev l ++ _)). apply (proj2 Lf).
    - rewrite beyond_scale. apply Rmult_le_compat_l; [apply Rmult_le_pos; lra|].
      apply B_bounds; auto. unfold Z. split.
      + intro; apply beyond_nonneg; auto. intro; apply Lf.
      + intros m a b s. rewrite <- beyond_scale. apply beyond_le; auto. intros r _.
        rewrite !rev_app_distr. simpl rev. rewrite <- !app_assoc. simpl app. apply (proj2 Lf). }
  assert (N : 0 <= beyond k backward i x' (Z x' v' z')).
  { unfold Z. apply beyond_nonneg; auto. intro; apply beyond_nonneg; auto. intro; apply Lf. }
  rewrite !Rmult_1_r.
  apply Rle_trans with (S1 * S2 * (C ^ S (length v) * A z z'
    * (B x x' * beyond k backward i x' (Z x' v' z')))).
  - replace (S1 * beyond k backward i x (Z x v z) * S2)
      with (S1 * S2 * beyond k backward i x (Z x v z)) by ring.
    apply Rmult_le_compat_l; [apply Rmult_le_pos; lra|assumption].
  - replace (L * _) with (S1 * S2 * (L * beyond k backward i x' (Z x' v' z'))) by ring.
    apply Rmult_le_compat_l; [apply Rmult_le_pos; lra|].
    rewrite <- !Rmult_assoc. now apply Rmult_le_compat_r.
Qed.
End read.
End weights.
