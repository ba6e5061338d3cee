(* What a node reveals through the records on one side of it.

   A side is a kernel: K n x z is the probability that the neighbour has the value z, given that the
   node has the value x and n records lie beyond the neighbour; mass n x is 0 if a node with n
   records on this side cannot have the value x. A table E bounds how much two values of a node
   reveal through all records on that side (rules COUNT, STEP and CLOSE). *)
From Coq Require Import Reals Lra Lia List Arith.
From Pufferflow Require Import Sums.
Import ListNotations.
Open Scope R_scope.

(* Non-negative, and changed by at most the factor C by one record. *)
Definition lipschitz (C : R) (g : list nat -> R) :=
  (forall s, 0 <= g s) /\ (forall l x y r, g (l ++ x :: r) <= C * g (l ++ y :: r)).

Lemma lipschitz_tail C g z : lipschitz C g -> lipschitz C (fun r => g (z :: r)).
Proof. intros [P H]; split; [intro; apply P|]. intros l. apply (H (z :: l)). Qed.

Section side.
Variable k : nat.
Variable C : R.
Hypothesis C1 : 1 <= C.
Variable K : nat -> nat -> nat -> R.
Hypothesis K_nonneg : forall n x z, (x < k)%nat -> (z < k)%nat -> 0 <= K n x z.
Variable mass : nat -> nat -> R.

(* E[g(the n records of this side, the nearest first) | the node has the value x] *)
Fixpoint beyond (n x : nat) (g : list nat -> R) : R :=
  match n with
  | O => g []
  | S m => sum k (fun z => K m x z * beyond m z (fun r => g (z :: r)))
  end.

Lemma beyond_le n x f g :
  (x < k)%nat -> (forall s, length s = n -> f s <= g s) -> beyond n x f <= beyond n x g.
Proof.
  revert x f g; induction n as [|n IH]; intros x f g Hx H; simpl; [now apply H|].
  apply sum_le; intros z Hz. apply Rmult_le_compat_l; [now apply K_nonneg|].
  apply IH; auto. intros s Hs; apply H; simpl; now f_equal.
Qed.

Lemma beyond_scale n x a g : beyond n x (fun s => a * g s) = a * beyond n x g.
Proof.
  revert x g; induction n as [|n IH]; intros x g; simpl; [reflexivity|].
  rewrite <- sum_scale. apply sum_ext; intros z _. rewrite IH. ring.
Qed.

Lemma beyond_ext n x f g :
  (x < k)%nat -> (forall s, length s = n -> f s = g s) -> beyond n x f = beyond n x g.
Proof. intros Hx H; apply Rle_antisym; apply beyond_le; auto; intros s L; rewrite H; auto; lra. Qed.

Lemma beyond_nonneg n x g : (x < k)%nat -> (forall s, 0 <= g s) -> 0 <= beyond n x g.
Proof.
  intros Hx H. rewrite <- (Rmult_0_l (beyond n x g)), <- beyond_scale.
  apply beyond_le; auto. intros s _; rewrite Rmult_0_l; auto.
Qed.

(* What two values of a node with n records on this side reveal is at most E x y, where that is
   positive: 0 stands for no bound. *)
Definition bounds (n : nat) (E : nat -> nat -> R) :=
  forall x y g, (x < k)%nat -> (y < k)%nat -> 0 < mass n x -> 0 < mass n y -> 0 < E x y ->
  lipschitz C g -> beyond n x g <= E x y * beyond n y g.

Lemma bounds_weaker n E F :
  (forall x y, (x < k)%nat -> (y < k)%nat -> 0 < F x y -> 0 < E x y <= F x y) ->
  bounds n E -> bounds n F.
Proof.
  intros H B x y g Hx Hy Mx My Pos L. destruct (H x y Hx Hy Pos) as [P1 P2].
  apply Rle_trans with (1 := B x y g Hx Hy Mx My P1 L).
  apply Rmult_le_compat_r; [apply beyond_nonneg; auto; apply L|assumption].
Qed.

(* COUNT. Conditional probabilities add up to 1 where the node can have the value. *)
Definition sums_to_1 (n x : nat) := beyond n x (fun _ => 1) = 1.

Lemma swap C0 g : 0 <= C0 -> lipschitz C0 g ->
  forall s t l r, length s = length t -> g (l ++ s ++ r) <= C0 ^ length s * g (l ++ t ++ r).
Proof.
  intros C0p [Gp G]; induction s as [|x s IH]; intros [|y t] l r E; simpl in *; try discriminate.
  - lra.
  - injection E as E. specialize (IH t (l ++ [x]) r E). rewrite <- !app_assoc in IH. simpl in IH.
    apply Rle_trans with (1 := IH). rewrite (Rmult_comm C0), Rmult_assoc.
    apply Rmult_le_compat_l; [now apply pow_le|]. apply G.
Qed.

Lemma swap_all C0 g : 0 <= C0 -> lipschitz C0 g ->
  forall s t, length s = length t -> g s <= C0 ^ length s * g t.
Proof.
  intros P L s t E. pose proof (swap C0 g P L s t [] [] E) as H. simpl in H.
  now rewrite !app_nil_r in H.
Qed.

Lemma count n x y g :
  (x < k)%nat -> (y < k)%nat -> sums_to_1 n x -> sums_to_1 n y -> lipschitz C g ->
  beyond n x g <= C ^ n * beyond n y g.
Proof.
  intros Hx Hy Sx Sy L.
  assert (C0 : 0 <= C) by lra.
  pose (v := repeat 0%nat n : list nat).
  assert (Lv : length v = n) by apply repeat_length.
  assert (A : forall t, length t = n -> g t <= C ^ n * beyond n y g).
  { intros t Lt.
    replace (g t) with (g t * beyond n y (fun _ => 1)) by (rewrite Sy; ring).
    rewrite <- !beyond_scale. apply beyond_le; auto.
    intros s Ls. rewrite Rmult_1_r. rewrite <- Lt. apply (swap_all C g C0 L t s). congruence. }
  replace (C ^ n * beyond n y g) with (C ^ n * beyond n y g * beyond n x (fun _ => 1))
    by (rewrite Sx; ring).
  rewrite <- beyond_scale. apply beyond_le; auto. intros s Ls. rewrite Rmult_1_r. auto.
Qed.

(* STEP: E[g | x] is K . h, where h(z) = E[g(z, ...) | z] changes by at most the growth. *)
Definition growing (w : nat -> R) (G : nat -> nat -> R) (h : nat -> R) :=
  (forall z, (z < k)%nat -> 0 <= h z) /\
  (forall z y, (z < k)%nat -> (y < k)%nat -> 0 < w z -> 0 < w y -> 0 < G z y -> h z <= G z y * h y).

Lemma step_growing n E g :
  bounds n E -> lipschitz C g ->
  growing (mass n) (fun z y => C * E z y) (fun z => beyond n z (fun r => g (z :: r))).
Proof.
  intros B L. split; intros z; [intros Hz; apply beyond_nonneg; auto; intro; apply L|].
  intros y Hz Hy Mz My Pos. assert (0 < E z y).
  { destruct (Rlt_le_dec 0 (E z y)) as [|N]; [assumption|].
    assert (0 <= C) by lra. assert (C * E z y <= 0) by nra. lra. }
  apply Rle_trans with (beyond n z (fun r => C * g (y :: r))).
  - apply beyond_le; auto. intros s _. apply (proj2 L [] z y s).
  - rewrite beyond_scale, Rmult_assoc. apply Rmult_le_compat_l; [lra|].
    apply B; auto. now apply lipschitz_tail.
Qed.

(* CLOSE (Theorem 2): a table whose step lies within it serves every node beyond n0; it bounds
   those from n1 on, from which a step may lead to them. *)
Theorem close n1 n0 N E F :
  (forall n, (n1 <= n <= n0)%nat -> (n <= N)%nat -> bounds n E) ->
  (forall n, (n0 <= n < N)%nat -> (forall j, (n1 <= j <= n)%nat -> bounds j E) ->
   bounds (S n) F) ->
  (forall x y, (x < k)%nat -> (y < k)%nat -> 0 < E x y -> 0 < F x y <= E x y) ->
  forall n, (n0 < n <= N)%nat -> bounds n F.
Proof.
  intros B0 St W.
  assert (A : forall n, (n1 <= n <= N)%nat -> bounds n E).
  { induction n as [n IH] using lt_wf_ind. intros Hn.
    destruct (Nat.le_gt_cases n n0) as [|Gt]; [apply B0; lia|].
    destruct n as [|n]; [lia|]. apply bounds_weaker with F; [assumption|]. apply St; [lia|].
    intros j Hj. apply IH; lia. }
  intros n Hn. destruct n as [|n]; [lia|]. apply St; [lia|]. intros j Hj. apply A. lia.
Qed.
End side.
