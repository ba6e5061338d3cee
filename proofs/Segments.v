(* What holds for a window of w among T records holds for shorter windows and segments, and what
   all records of a segment reveal together bounds everything. *)
From Coq Require Import Reals Lra Lia List Arith.
From Pufferflow Require Import Sums Chains Sides.
Import ListNotations.
Open Scope R_scope.

Lemma mechanism_lipschitz c f : mechanism c f -> lipschitz (exp c) f.
Proof. now intros [H1 H2]. Qed.

Lemma exp_ge_1 c : 0 <= c -> 1 <= exp c.
Proof. intros H. pose proof (exp_ineq1_le c). lra. Qed.

Lemma exp_pow c n : exp c ^ n = exp (INR n * c).
Proof.
  induction n as [|n IH]; [simpl; rewrite Rmult_0_l, exp_0; reflexivity|].
  rewrite S_INR, <- tech_pow_Rmult, IH, <- exp_plus. f_equal. ring.
Qed.

Section chain.
Variable k : nat.
Variable q : nat -> R.
Variable P : nat -> nat -> nat -> R.
Hypothesis chain_P : chain k q P.

Lemma path_nonneg s : forall t x, (x < k)%nat -> below k s -> 0 <= path P t x s.
Proof.
  induction s as [|y s IH]; intros t x Hx B; simpl; [lra|]. inversion B; subst.
  apply Rmult_le_pos; [apply chain_P|]; auto.
Qed.

Lemma prob_nonneg s : below k s -> 0 <= prob q P s.
Proof.
  destruct s as [|x s]; intros B; simpl; [lra|]. inversion B; subst.
  apply Rmult_le_pos; [apply chain_P|apply path_nonneg]; auto.
Qed.

Lemma expect_scale i j u a f :
  expect k q P i j u (fun s => a * f s) = a * expect k q P i j u f.
Proof.
  unfold expect. rewrite <- total_scale. apply total_ext; intros l _ _.
  rewrite <- total_scale. apply total_ext; intros; ring.
Qed.

Lemma expect_le i j u f g : below k u ->
  (forall s, length s = (i + length u + j)%nat -> f s <= g s) ->
  expect k q P i j u f <= expect k q P i j u g.
Proof.
  intros Bu H. unfold expect. apply total_le; intros l Ll Bl. apply total_le; intros r Lr Br.
  apply Rmult_le_compat_l.
  - apply prob_nonneg. unfold below in *. apply Forall_app; split; [|apply Forall_app]; auto.
  - apply H. rewrite !app_length. lia.
Qed.

Lemma expect_nonneg i j u f : below k u -> (forall s, 0 <= f s) -> 0 <= expect k q P i j u f.
Proof.
  intros Bu H. rewrite <- (Rmult_0_l (expect k q P i j u f)), <- expect_scale.
  apply expect_le; auto. intros s _. rewrite Rmult_0_l. auto.
Qed.

(* COUNT alone. *)
Lemma private_group c eps T w :
  0 <= c -> INR T * c <= eps -> private k q P c eps T w.
Proof.
  intros Hc He f Hf i j u u' HT Lu Lu' Bu Bu'.
  pose proof (mechanism_lipschitz c f Hf) as Lf.
  assert (A : forall s s', length s = T -> length s' = T -> f s <= exp eps * f s').
  { intros s s' Ls Ls'.
    apply Rle_trans with (exp c ^ length s * f s').
    - apply (swap_all (exp c) f (Rlt_le _ _ (exp_pos c)) Lf s s'). congruence.
    - apply Rmult_le_compat_r; [apply Lf|]. rewrite exp_pow, Ls.
      destruct He as [He|He]; [left; now apply exp_increasing|right; now rewrite He]. }
  assert (N : forall s, length s = T ->
    expect k q P i j u f <= exp eps * f s * expect k q P i j u (fun _ => 1)).
  { intros s Ls. rewrite <- expect_scale. apply expect_le; auto. intros s' Ls'.
    rewrite Rmult_1_r. apply A; lia. }
  rewrite <- (expect_scale i j u' (expect k q P i j u f)).
  replace (exp eps * _) with (exp eps * expect k q P i j u (fun _ => 1) * expect k q P i j u' f)
    by ring.
  rewrite <- expect_scale. apply expect_le; auto. intros s Ls. specialize (N s ltac:(lia)). lra.
Qed.

(* -- shorter segments ------------------------------------------------------------------------- *)

Lemma path_last t x s :
  (x < k)%nat -> below k s -> sum k (fun y => path P t x (s ++ [y])) = path P t x s.
Proof.
  revert t x; induction s as [|z s IH]; intros t x Hx B; simpl.
  - rewrite (sum_ext k _ (P t x)) by (intros; ring). now apply chain_P.
  - inversion B; subst. rewrite sum_scale, IH by assumption. reflexivity.
Qed.

Lemma prob_last s : s <> [] -> below k s -> sum k (fun y => prob q P (s ++ [y])) = prob q P s.
Proof.
  destruct s as [|x s]; intros Ne B; [contradiction|]. simpl. inversion B; subst.
  rewrite sum_scale, path_last by assumption. reflexivity.
Qed.

Lemma expect_longer T i j u f :
  (i + length u + j)%nat = T -> u <> [] -> below k u ->
  expect k q P i (S j) u (fun s => f (firstn T s)) = expect k q P i j u f.
Proof.
  intros <- Ne Bu. unfold expect. apply total_ext; intros l Ll Bl. rewrite total_last.
  rewrite <- (total_sum k j k (fun x s => prob q P (l ++ u ++ s ++ [x])
    * f (firstn (i + length u + j) (l ++ u ++ s ++ [x])))).
  apply total_ext; intros r Lr Br.
  rewrite <- (prob_last (l ++ u ++ r)).
  - rewrite Rmult_comm, <- sum_scale. apply sum_ext; intros x Hx.
    rewrite <- !app_assoc, Rmult_comm. f_equal. f_equal.
    replace (i + length u + j)%nat with (length (l ++ u ++ r)) by (rewrite !app_length; lia).
    replace (l ++ u ++ r ++ [x]) with ((l ++ u ++ r) ++ [x]) by (now rewrite <- !app_assoc).
    now rewrite firstn_app, Nat.sub_diag, firstn_all, app_nil_r.
  - destruct l; [|discriminate]. destruct u; [contradiction|discriminate].
  - unfold below in *. rewrite !Forall_app. auto.
Qed.

Lemma mechanism_firstn c f n : 0 <= c -> mechanism c f -> mechanism c (fun s => f (firstn n s)).
Proof.
  intros Hc [Pf H]; split; [auto|]. intros l x y r. rewrite !firstn_app.
  destruct (n - length l)%nat as [|d]; simpl; [|apply H].
  rewrite app_nil_r. pose proof (exp_ge_1 c Hc). specialize (Pf (firstn n l)). nra.
Qed.

Lemma private_shorter c eps T w :
  0 <= c -> (1 <= w)%nat -> private k q P c eps (S T) w -> private k q P c eps T w.
Proof.
  intros Hc Hw H f Hf i j u u' HT Lu Lu' Bu Bu'.
  specialize (H (fun s => f (firstn T s)) (mechanism_firstn c f T Hc Hf) i (S j) u u'
    ltac:(lia) Lu Lu' Bu Bu').
  assert (N : u <> [] /\ u' <> []) by (split; intros ->; simpl in *; lia). destruct N.
  rewrite !(expect_longer T) in H by (auto; lia).
  rewrite (expect_longer T i j u (fun _ => 1)), (expect_longer T i j u' (fun _ => 1)) in H
    by (auto; lia). exact H.
Qed.

(* -- shorter windows -------------------------------------------------------------------------- *)

Lemma expect_right i j u f :
  expect k q P i (S j) u f = sum k (fun y => expect k q P i j (u ++ [y]) f).
Proof.
  unfold expect. rewrite <- total_sum. apply total_ext; intros l _ _. simpl.
  apply sum_ext; intros y _. apply total_ext; intros r _ _. now rewrite <- app_assoc.
Qed.

Lemma expect_left i j u f :
  expect k q P (S i) j u f = sum k (fun y => expect k q P i j (y :: u) f).
Proof.
  unfold expect. rewrite total_last. apply sum_ext; intros y _. apply total_ext; intros l _ _.
  apply total_ext; intros r _ _. now rewrite <- app_assoc.
Qed.

Lemma sum_product n a b : sum n a * sum n b = sum n (fun y => sum n (fun z => a y * b z)).
Proof.
  rewrite Rmult_comm, <- sum_scale. apply sum_ext; intros y _. rewrite sum_scale. ring.
Qed.

Lemma sum_pairs n L a b a' b' :
  (forall y z, (y < n)%nat -> (z < n)%nat -> a y * b' z <= L * (a' z * b y)) ->
  sum n a * sum n b' <= L * (sum n a' * sum n b).
Proof.
  intros H. rewrite !sum_product, (sum_swap n n (fun y z => a' y * b z)), <- sum_scale.
  apply sum_le; intros y Hy. rewrite <- sum_scale. apply sum_le; auto.
Qed.

Lemma private_narrower c eps T w :
  (S w <= T)%nat -> private k q P c eps T (S w) -> private k q P c eps T w.
Proof.
  intros HwT H f Hf i j u u' HT Lu Lu' Bu Bu'. destruct j as [|j].
  - destruct i as [|i]; [lia|]. rewrite !expect_left. apply sum_pairs; intros y z Hy Hz.
    apply H; auto; simpl; try lia; now constructor.
  - rewrite !expect_right. apply sum_pairs; intros y z Hy Hz.
    apply H; auto; rewrite ?app_length; simpl; try lia; apply Forall_app; split; auto.
Qed.

Theorem private_within c eps T w T' w' :
  0 <= c -> private k q P c eps T w -> (1 <= w' <= w)%nat -> (w <= T)%nat ->
  (w' <= T' <= T)%nat -> private k q P c eps T' w'.
Proof.
  intros Hc H Hw HwT HT.
  assert (A : private k q P c eps T w').
  { replace w with (w' + (w - w'))%nat in * by lia. revert H HwT. generalize (w - w')%nat as d.
    clear Hw. induction d as [|d IH]; intros H HwT; [now rewrite Nat.add_0_r in H|].
    rewrite Nat.add_succ_r in *. apply IH; [|lia]. now apply private_narrower. }
  clear H. replace T with (T' + (T - T'))%nat in * by lia. revert A. generalize (T - T')%nat as d.
  induction d as [|d IH]; intros A; [now rewrite Nat.add_0_r in A|].
  rewrite Nat.add_succ_r in A. apply IH. apply private_shorter; auto; lia.
Qed.
End chain.
