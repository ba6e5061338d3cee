(* Numbers of the checker: integers, read as multiples of 1 / one, rounded to the safe side. *)
From Coq Require Import Reals Lra Lia List Arith ZArith QArith Qreals.
From Pufferflow Require Import Sums.
Import ListNotations.
Open Scope Z_scope.

Definition down (a b : Z) : Z := a / b.
Definition up (a b : Z) : Z := - (- a / b).

Lemma down_le a b : 0 < b -> (IZR (down a b) <= IZR a / IZR b)%R.
Proof.
  intros Hb. assert (0 < IZR b)%R by (now apply IZR_lt).
  apply Rmult_le_reg_r with (IZR b); [assumption|].
  replace (IZR a / IZR b * IZR b)%R with (IZR a) by (field; lra).
  rewrite <- mult_IZR. apply IZR_le. unfold down. pose proof (Z.mul_div_le a b Hb). lia.
Qed.

Lemma up_ge a b : 0 < b -> (IZR a / IZR b <= IZR (up a b))%R.
Proof.
  intros Hb. pose proof (down_le (- a) b Hb) as H. unfold down in H. unfold up.
  rewrite opp_IZR in *. unfold Rdiv in *. lra.
Qed.

Lemma down_nonneg a b : 0 <= a -> 0 < b -> 0 <= down a b.
Proof. intros; now apply Z.div_pos. Qed.

(* e^(a/d), from 1 + y <= e^y <= 1 / (1 - y) at y = a / (d 2^j), squared j times. *)
Fixpoint times {A : Type} (j : nat) (f : A -> A) (a : A) : A :=
  match j with O => a | S i => times i f (f a) end.

(* Beyond e^100000 nobody waits for the digits: nothing is bounded. *)
Definition most (d : Z) : Z := 100000 * d.

Definition exp_up (one : Z) (j : nat) (a d : Z) : Z :=
  let n := d * 2 ^ Z.of_nat j in
  if (a <? n) && (a <=? most d) then times j (fun u => up (u * u) one) (up (one * n) (n - a)) else
    0.

Definition exp_down (one : Z) (j : nat) (a d : Z) : Z :=
  let a := Z.min a (most d) in
  let n := d * 2 ^ Z.of_nat j in
  times j (fun u => down (u * u) one) (down (one * (n + a)) n).

Definition value (one z : Z) : R := (IZR z / IZR one)%R.

Lemma value_le one y z : 0 < one -> y <= z -> (value one y <= value one z)%R.
Proof.
  intros H L. apply Rmult_le_compat_r; [|now apply IZR_le].
  apply Rlt_le, Rinv_0_lt_compat. now apply IZR_lt.
Qed.

Lemma value_pos one z : 0 < one -> (0 < value one z)%R <-> 0 < z.
Proof.
  intros H. assert (0 < / IZR one)%R by (apply Rinv_0_lt_compat; now apply IZR_lt).
  unfold value, Rdiv. split; intros L.
  - apply lt_IZR. apply Rmult_lt_reg_r with (/ IZR one)%R; lra.
  - apply Rmult_lt_0_compat; [now apply IZR_lt|assumption].
Qed.


Lemma exp_double y : (exp (2 * y) = exp y * exp y)%R.
Proof. rewrite <- exp_plus. f_equal; ring. Qed.

Lemma squared_up one : 0 < one -> forall j u y,
  (0 <= y)%R -> (exp y <= value one u)%R ->
  (exp (2 ^ j * y) <= value one (times j (fun u => up (u * u) one) u))%R.
Proof.
  intros H j; induction j as [|j IH]; intros u y Hy Hu; simpl times.
  - simpl. now rewrite Rmult_1_l.
  - replace (2 ^ S j * y)%R with (2 ^ j * (2 * y))%R by (simpl; ring). apply IH; [lra|].
    rewrite exp_double. assert (0 < IZR one)%R by (now apply IZR_lt).
    apply Rle_trans with (value one u * value one u)%R.
    + pose proof (exp_pos y). apply Rmult_le_compat; lra.
    + unfold value. replace (IZR u / IZR one * (IZR u / IZR one))%R
        with (IZR (u * u) / IZR one / IZR one)%R by (rewrite mult_IZR; field; lra).
      apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|]. now apply up_ge.
Qed.

Lemma squared_down one : 0 < one -> forall j u y,
  0 <= u -> (value one u <= exp y)%R ->
  (value one (times j (fun u => down (u * u) one) u) <= exp (2 ^ j * y))%R.
Proof.
  intros H j; induction j as [|j IH]; intros u y Hp Hu; simpl times.
  - simpl. now rewrite Rmult_1_l.
  - replace (2 ^ S j * y)%R with (2 ^ j * (2 * y))%R by (simpl; ring). apply IH.
    + apply down_nonneg; nia.
    + rewrite exp_double. assert (0 < IZR one)%R by (now apply IZR_lt).
      assert (0 <= value one u)%R.
      { unfold value; apply Rmult_le_pos; [now apply IZR_le|]. left. now apply Rinv_0_lt_compat. }
      apply Rle_trans with (value one u * value one u)%R; [|apply Rmult_le_compat; lra].
      unfold value. replace (IZR u / IZR one * (IZR u / IZR one))%R
        with (IZR (u * u) / IZR one / IZR one)%R by (rewrite mult_IZR; field; lra).
      apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|]. now apply down_le.
Qed.

Lemma power_IZR j : IZR (2 ^ Z.of_nat j) = (2 ^ j)%R.
Proof. rewrite <- pow_IZR. reflexivity. Qed.

Lemma exp_up_ge one j a d :
  0 < one -> 0 <= a -> 0 < d -> 0 < exp_up one j a d ->
  (exp (IZR a / IZR d) <= value one (exp_up one j a d))%R.
Proof.
  intros H Ha Hd. unfold exp_up. set (n := d * 2 ^ Z.of_nat j).
  destruct (Z.ltb_spec a n) as [Hn|]; [|simpl; lia].
  destruct (a <=? most d); [|simpl; lia]. intros _. simpl andb. cbv iota.
  assert (Pn : (0 < 2 ^ j)%R) by (apply pow_lt; lra).
  assert (Pd : (0 < IZR d)%R) by (now apply IZR_lt).
  assert (E : IZR n = (IZR d * 2 ^ j)%R) by (unfold n; now rewrite mult_IZR, power_IZR).
  assert (A0 : (0 <= IZR a)%R) by (now apply IZR_le).
  assert (An : (IZR a < IZR n)%R) by (now apply IZR_lt).
  replace (IZR a / IZR d)%R with (2 ^ j * (IZR a / IZR n))%R by (rewrite E; field; lra).
  assert (Pr : (0 < IZR n)%R) by lra.
  apply squared_up; [assumption| |].
  - apply Rmult_le_pos; [assumption|]. left; now apply Rinv_0_lt_compat.
  - apply Rle_trans with (IZR n / (IZR n - IZR a))%R.
    + pose proof (exp_ineq1_le (- (IZR a / IZR n))) as Q. rewrite exp_Ropp in Q.
      assert (0 < exp (IZR a / IZR n))%R as Pe by apply exp_pos.
      apply Rmult_le_reg_r with (IZR n - IZR a)%R; [lra|].
      replace (IZR n / (IZR n - IZR a) * (IZR n - IZR a))%R with (IZR n) by (field; lra).
      apply (Rmult_le_compat_l (exp (IZR a / IZR n) * IZR n)%R) in Q; [|nra].
      replace (exp (IZR a / IZR n) * IZR n * / exp (IZR a / IZR n))%R with (IZR n) in Q
        by (field; lra).
      replace (exp (IZR a / IZR n) * IZR n * (1 + - (IZR a / IZR n)))%R
        with (exp (IZR a / IZR n) * (IZR n - IZR a))%R in Q by (field; lra). exact Q.
    + assert (Q : (IZR (one * n) / IZR (n - a) <= IZR (up (one * n) (n - a)))%R)
        by (apply up_ge; lia).
      rewrite mult_IZR, minus_IZR in Q. assert (0 < IZR one)%R by (now apply IZR_lt).
      unfold value. apply Rmult_le_reg_l with (IZR one); [assumption|].
      replace (IZR one * (IZR (up (one * n) (n - a)) / IZR one))%R
        with (IZR (up (one * n) (n - a))) by (field; lra).
      unfold Rdiv in *. now rewrite <- Rmult_assoc.
Qed.

Lemma exp_down_le one j a d :
  0 < one -> 0 <= a -> 0 < d -> (value one (exp_down one j a d) <= exp (IZR a / IZR d))%R.
Proof.
  intros H Ha' Hd. unfold exp_down. set (n := d * 2 ^ Z.of_nat j).
  set (b := Z.min a (most d)). assert (Ha : 0 <= b) by (unfold b, most; lia).
  apply Rle_trans with (exp (IZR b / IZR d)).
  2: { destruct (Z.eq_dec b a) as [->|N]; [lra|]. left. apply exp_increasing.
    apply Rmult_lt_compat_r; [apply Rinv_0_lt_compat; now apply IZR_lt|].
    apply IZR_lt. unfold b in *. lia. }
  clearbody b. clear Ha'. rename b into a'. clear a. rename a' into a.
  assert (Pn : (0 < 2 ^ j)%R) by (apply pow_lt; lra).
  assert (Pd : (0 < IZR d)%R) by (now apply IZR_lt).
  assert (E : IZR n = (IZR d * 2 ^ j)%R) by (unfold n; now rewrite mult_IZR, power_IZR).
  assert (Pr : (0 < IZR n)%R) by (rewrite E; apply Rmult_lt_0_compat; lra).
  assert (Zn : 0 < n) by (now apply lt_IZR).
  replace (IZR a / IZR d)%R with (2 ^ j * (IZR a / IZR n))%R by (rewrite E; field; lra).
  apply squared_down; [assumption|apply down_nonneg; nia|].
  apply Rle_trans with (1 + IZR a / IZR n)%R; [|apply exp_ineq1_le].
  pose proof (down_le (one * (n + a)) n Zn) as Q. rewrite mult_IZR, plus_IZR in Q.
  assert (0 < IZR one)%R by (now apply IZR_lt).
  unfold value. apply Rmult_le_reg_l with (IZR one); [assumption|].
  replace (IZR one * (IZR (down (one * (n + a)) n) / IZR one))%R
    with (IZR (down (one * (n + a)) n)) by (field; lra).
  replace (IZR one * (1 + IZR a / IZR n))%R
    with (IZR one * (IZR n + IZR a) / IZR n)%R by (field; lra). exact Q.
Qed.

(* l_0 h(0) + l_1 h(1) + ... *)
Fixpoint dot (l : list Z) (h : nat -> R) : R :=
  match l with [] => 0%R | a :: r => (IZR a * h O + dot r (fun i => h (S i)))%R end.

Lemma dot_sum l k h : (length l <= k)%nat -> dot l h = sum k (fun i => IZR (nth i l 0%Z) * h i)%R.
Proof.
  revert k h; induction l as [|a l IH]; intros k h Hk.
  - simpl. symmetry. rewrite <- (sum_zero k). apply sum_ext. intros [|i] _; simpl; ring.
  - destruct k as [|k]; [simpl in Hk; lia|].
    assert (Sh : forall n F, (sum (S n) F = F O + sum n (fun i => F (S i)))%R).
    { clear; intros n F; induction n as [|n IH]; [simpl; ring|].
      change (sum (S (S n)) F) with (sum (S n) F + F (S n))%R. rewrite IH. simpl. ring. }
    rewrite Sh. simpl. rewrite (IH k) by (simpl in Hk; lia). reflexivity.
Qed.

(* Adds v at place i of a list that goes on with zeros. *)
Fixpoint add (l : list Z) (i : nat) (v : Z) : list Z :=
  match i, l with
  | O, [] => [v]
  | O, a :: r => a + v :: r
  | S j, [] => 0 :: add [] j v
  | S j, a :: r => a :: add r j v
  end.

Lemma dot_add i : forall l v h, dot (add l i v) h = (dot l h + IZR v * h i)%R.
Proof.
  induction i as [|i IH]; intros [|a l] v h; simpl; rewrite ?IH, ?plus_IZR; simpl; ring.
Qed.

Lemma dot_scale a l h : dot (map (Z.mul a) l) h = (IZR a * dot l h)%R.
Proof. revert h; induction l as [|b l IH]; intros h; simpl; rewrite ?IH, ?mult_IZR; ring. Qed.

(* Is net at most a * low, entry by entry? *)
Fixpoint under (net low : list Z) (a : Z) : bool :=
  match net, low with
  | [], _ => true
  | n :: r, [] => (n <=? 0) && under r [] a
  | n :: r, b :: s => (n <=? a * b) && under r s a
  end.

Lemma under_dot net : forall low a h,
  under net low a = true -> 0 <= a -> Forall (fun b => 0 <= b) low ->
  (forall i, 0 <= h i)%R -> (dot net h <= IZR a * dot low h)%R.
Proof.
  induction net as [|n net IH]; intros low a h U Ha L H; simpl.
  - assert (0 <= dot low h)%R.
    { clear U. revert h H; induction L as [|b low Hb L IH]; intros h H; simpl; [lra|].
      apply Rplus_le_le_0_compat; [apply Rmult_le_pos; auto; now apply IZR_le|]. now apply IH. }
    apply Rmult_le_pos; [now apply IZR_le|assumption].
  - destruct low as [|b low]; simpl in *; apply andb_prop in U; destruct U as [U1 U2];
      apply Z.leb_le in U1; apply IZR_le in U1.
    + specialize (IH [] a (fun i => h (S i)) U2 Ha L (fun i => H (S i))). simpl in IH.
      pose proof (Rmult_le_compat_r (h O) _ _ (H O) U1). lra.
    + inversion L; subst.
      specialize (IH low a (fun i => h (S i)) U2 Ha H3 (fun i => H (S i))).
      rewrite mult_IZR in U1. pose proof (Rmult_le_compat_r (h O) _ _ (H O) U1). lra.
Qed.
