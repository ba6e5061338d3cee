(* Finite sums of real numbers, and sums over all sequences of records. *)
From Coq Require Import Reals Lra Lia List Arith.
Import ListNotations.
Open Scope R_scope.

(* F 0 + ... + F (n - 1) *)
Fixpoint sum (n : nat) (F : nat -> R) : R :=
  match n with O => 0 | S m => sum m F + F m end.

Lemma sum_ext n F G : (forall i, (i < n)%nat -> F i = G i) -> sum n F = sum n G.
Proof.
  induction n as [|n IH]; intros H; simpl; [reflexivity|].
  rewrite IH, H; auto with arith.
Qed.

Lemma sum_le n F G : (forall i, (i < n)%nat -> F i <= G i) -> sum n F <= sum n G.
Proof.
  induction n as [|n IH]; intros H; simpl; [lra|].
  apply Rplus_le_compat; auto with arith.
Qed.

Lemma sum_zero n : sum n (fun _ => 0) = 0.
Proof. induction n as [|n IH]; simpl; [|rewrite IH]; lra. Qed.

Lemma sum_nonneg n F : (forall i, (i < n)%nat -> 0 <= F i) -> 0 <= sum n F.
Proof. intros H. rewrite <- (sum_zero n). now apply sum_le. Qed.

Lemma sum_scale n a F : sum n (fun i => a * F i) = a * sum n F.
Proof. induction n as [|n IH]; simpl; [|rewrite IH]; lra. Qed.

Lemma sum_plus n F G : sum n (fun i => F i + G i) = sum n F + sum n G.
Proof. induction n as [|n IH]; simpl; [|rewrite IH]; lra. Qed.

Lemma sum_swap n m F :
  sum n (fun i => sum m (fun j => F i j)) = sum m (fun j => sum n (fun i => F i j)).
Proof.
  induction n as [|n IH]; simpl.
  - now rewrite sum_zero.
  - now rewrite IH, <- sum_plus.
Qed.

Lemma sum_zero_terms n F :
  (forall i, (i < n)%nat -> 0 <= F i) -> sum n F = 0 -> forall i, (i < n)%nat -> F i = 0.
Proof.
  induction n as [|n IH]; intros H S i Hi; simpl in *; [lia|].
  assert (0 <= sum n F) by (apply sum_nonneg; auto with arith).
  assert (0 <= F n) by auto with arith.
  destruct (Nat.eq_dec i n) as [->|]; [lra|apply IH; auto with arith; lra || lia].
Qed.

Lemma sum_term n F i : (forall j, (j < n)%nat -> 0 <= F j) -> (i < n)%nat -> F i <= sum n F.
Proof.
  induction n as [|n IH]; intros H Hi; simpl; [lia|].
  assert (0 <= sum n F) by (apply sum_nonneg; auto with arith).
  assert (0 <= F n) by auto with arith.
  destruct (Nat.eq_dec i n) as [->|]; [lra|].
  assert (F i <= sum n F) by (apply IH; auto with arith; lia). lra.
Qed.

(* The sum of F over all sequences of T records with values below k. *)
Fixpoint total (k T : nat) (F : list nat -> R) : R :=
  match T with O => F [] | S n => sum k (fun x => total k n (fun s => F (x :: s))) end.

Definition below (k : nat) (s : list nat) := Forall (fun x => (x < k)%nat) s.

Section total.
Variable k : nat.

Lemma total_ext T F G :
  (forall s, length s = T -> below k s -> F s = G s) -> total k T F = total k T G.
Proof.
  revert F G; induction T as [|T IH]; intros F G H; simpl.
  - apply H; [reflexivity|constructor].
  - apply sum_ext; intros x Hx. apply IH; intros s Hs Hb.
    apply H; simpl; [now f_equal|now constructor].
Qed.

Lemma total_le T F G :
  (forall s, length s = T -> below k s -> F s <= G s) -> total k T F <= total k T G.
Proof.
  revert F G; induction T as [|T IH]; intros F G H; simpl.
  - apply H; [reflexivity|constructor].
  - apply sum_le; intros x Hx. apply IH; intros s Hs Hb.
    apply H; simpl; [now f_equal|now constructor].
Qed.

Lemma total_scale T a F : total k T (fun s => a * F s) = a * total k T F.
Proof.
  revert F; induction T as [|T IH]; intros F; simpl; [reflexivity|].
  rewrite <- sum_scale. apply sum_ext; intros x _. now rewrite <- IH.
Qed.

Lemma total_nonneg T F :
  (forall s, length s = T -> below k s -> 0 <= F s) -> 0 <= total k T F.
Proof.
  intros H. replace 0 with (total k T (fun _ => 0 * 0)).
  - apply total_le; intros; rewrite Rmult_0_l; auto.
  - rewrite total_scale; lra.
Qed.

Lemma total_sum T n F :
  total k T (fun s => sum n (fun x => F x s)) = sum n (fun x => total k T (F x)).
Proof.
  revert F; induction T as [|T IH]; intros F; simpl; [reflexivity|].
  rewrite sum_swap. apply sum_ext; intros x _. now rewrite <- IH.
Qed.

(* The last record apart, instead of the first. *)
Lemma total_last T F : total k (S T) F = sum k (fun x => total k T (fun s => F (s ++ [x]))).
Proof.
  revert F; induction T as [|T IH]; intros F; [reflexivity|].
  change (total k (S (S T)) F) with (sum k (fun x => total k (S T) (fun s => F (x :: s)))).
  transitivity (sum k (fun x => sum k (fun y => total k T (fun s => F (x :: s ++ [y]))))).
  - apply sum_ext; intros x _. now rewrite IH.
  - rewrite sum_swap. reflexivity.
Qed.

Lemma total_app T n F :
  total k (T + n) F = total k T (fun s => total k n (fun r => F (s ++ r))).
Proof.
  revert F; induction T as [|T IH]; intros F; simpl; [reflexivity|].
  apply sum_ext; intros x _. now rewrite IH.
Qed.
End total.
