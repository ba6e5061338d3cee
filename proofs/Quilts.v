(* Powers of a matrix between bounds, and which quilt a node has. *)
From Coq Require Import Reals Lra Lia List Arith ZArith QArith Qreals Bool.
From Pufferflow Require Import Sums Chains Sides Reversal Blocks Numbers Claims Checker Steps
  Models.
Import ListNotations.
Open Scope Z_scope.

Section products.
Variable one : Z.
Hypothesis one_pos : 0 < one.
Variable k : nat.

Lemma dot_Z_sum f : forall row n s,
  IZR (dot_Z row (map f (seq s n))) = sum n (fun z => IZR (nth z row 0%Z) * IZR (f (s + z)%nat))%R.
Proof.
  assert (Sh : forall n F, (sum (S n) F = F O + sum n (fun i => F (S i)))%R).
  { intros n F; induction n as [|n IH]; [simpl; ring|].
    change (sum (S (S n)) F) with (sum (S n) F + F (S n))%R. rewrite IH. simpl. ring. }
  induction row as [|a row IH]; intros n s.
  - simpl. rewrite <- (sum_zero n). apply sum_ext. intros [|i] _; simpl; ring.
  - destruct n as [|n]; [reflexivity|]. rewrite Sh. cbn [seq map dot_Z nth].
    rewrite plus_IZR, mult_IZR, IH, Nat.add_0_r. f_equal. apply sum_ext; intros i _.
    now replace (s + S i)%nat with (S s + i)%nat by lia.
Qed.

Lemma product_get round r A B x y : length A = r -> (x < r)%nat -> (y < k)%nat ->
  get (product round one k A B) x y
  = round (dot_Z (nth x A []) (map (fun z => get B z y) (seq 0 k))) one.
Proof.
  intros La Hx Hy. unfold product, get.
  rewrite nth_indep with (d' := map (fun column => round (dot_Z [] column) one)
    (map (fun y => map (fun z => nth y (nth z B []) 0) (seq 0 k)) (seq 0 k)))
    by (rewrite map_length; lia).
  rewrite (map_nth (fun row => map (fun column => round (dot_Z row column) one)
    (map (fun y => map (fun z => nth y (nth z B []) 0) (seq 0 k)) (seq 0 k)))).
  rewrite nth_indep with (d' := round (dot_Z (nth x A []) (map (fun z => nth 0 (nth z B []) 0)
    (seq 0 k))) one) by (rewrite !map_length, seq_length; lia).
  rewrite map_map, (map_nth (fun y => round (dot_Z (nth x A [])
    (map (fun z => nth y (nth z B []) 0) (seq 0 k))) one)), seq_nth by assumption. reflexivity.
Qed.

Definition under_table (r : nat) (A : table) (Q : nat -> nat -> R) :=
  length A = r /\ forall x z, (x < r)%nat -> (z < k)%nat ->
  0 <= get A x z /\ (real one A x z <= Q x z)%R.
Definition over_table (r : nat) (A : table) (Q : nat -> nat -> R) :=
  length A = r /\ forall x z, (x < r)%nat -> (z < k)%nat -> (0 <= Q x z <= real one A x z)%R.

Lemma product_value A B x y : (y < k)%nat ->
  (IZR (dot_Z (nth x A []) (map (fun z => get B z y) (seq 0 k))) / IZR one / IZR one
   = sum k (fun z => real one A x z * real one B z y))%R.
Proof.
  intros Hy. rewrite dot_Z_sum. pose proof (one_R one one_pos).
  unfold Rdiv at 1 2. rewrite (Rmult_assoc (sum _ _)), Rmult_comm, <- sum_scale.
  apply sum_ext; intros z Hz. unfold real, value, get. simpl. field. lra.
Qed.

Lemma product_under r A B Q S : under_table r A Q -> under_table k B S ->
  under_table r (product down one k A B) (fun x z => sum k (fun y => Q x y * S y z)%R).
Proof.
  intros [La HA] [Lb HB]. split; [unfold product; now rewrite map_length|].
  intros x z Hx Hz. unfold real. rewrite (product_get _ r) by assumption.
    pose proof (one_R one one_pos).
  assert (N : 0 <= dot_Z (nth x A []) (map (fun y => get B y z) (seq 0 k))).
  { apply le_IZR. rewrite dot_Z_sum. apply sum_nonneg; intros y Hy.
    apply Rmult_le_pos; apply IZR_le; [apply (HA x y)|apply (HB y z)]; assumption. }
  split; [now apply down_nonneg|].
  apply Rle_trans with (IZR (dot_Z (nth x A []) (map (fun y => get B y z) (seq 0 k)))
    / IZR one / IZR one)%R.
  - apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|]. now apply down_le.
  - rewrite product_value by assumption. apply sum_le; intros y Hy.
    destruct (HA x y Hx Hy) as [A1 A2]. destruct (HB y z Hy Hz) as [B1 B2].
    assert (V : forall E u v, 0 <= get E u v -> (0 <= real one E u v)%R).
    { intros E u v P. apply Rmult_le_pos; [now apply IZR_le|].
      left. now apply Rinv_0_lt_compat. }
    apply Rmult_le_compat; auto.
Qed.

Lemma product_over r A B Q S : over_table r A Q -> over_table k B S ->
  over_table r (product up one k A B) (fun x z => sum k (fun y => Q x y * S y z)%R).
Proof.
  intros [La HA] [Lb HB]. split; [unfold product; now rewrite map_length|].
  intros x z Hx Hz. unfold real. rewrite (product_get _ r) by assumption.
    pose proof (one_R one one_pos).
  split.
  - apply sum_nonneg; intros y Hy. apply Rmult_le_pos; [apply (HA x y)|apply (HB y z)]; assumption.
  - apply Rle_trans with (IZR (dot_Z (nth x A []) (map (fun y => get B y z) (seq 0 k)))
      / IZR one / IZR one)%R.
    + rewrite product_value by assumption. apply sum_le; intros y Hy.
      destruct (HA x y Hx Hy) as [A1 A2]. destruct (HB y z Hy Hz) as [B1 B2].
      apply Rmult_le_compat; auto.
    + apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|]. now apply up_ge.
Qed.

Variable P : nat -> nat -> nat -> R.
Hypothesis same : forall t, P t = P 0%nat.

Lemma power_1 x z : (x < k)%nat -> power k P 0 1 x z = P 0%nat x z.
Proof. intros Hx. cbn [power]. now rewrite sum_one. Qed.

Lemma power_add m n x z : (x < k)%nat -> (z < k)%nat ->
  power k P 0 (m + n) x z = sum k (fun y => power k P 0 m x y * power k P 0 n y z)%R.
Proof.
  intros Hx Hz. rewrite power_app by assumption. apply sum_ext; intros y _.
  now rewrite (power_same k P n same (0 + m)).
Qed.

Lemma under_ext r A Q S : (forall x z, (x < r)%nat -> (z < k)%nat -> Q x z = S x z) ->
  under_table r A Q -> under_table r A S.
Proof. intros E [L H]. split; [assumption|]. intros x z Hx Hz. rewrite <- E by assumption. auto.
Qed.

Lemma over_ext r A Q S : (forall x z, (x < r)%nat -> (z < k)%nat -> Q x z = S x z) ->
  over_table r A Q -> over_table r A S.
Proof. intros E [L H]. split; [assumption|]. intros x z Hx Hz. rewrite <- E by assumption. auto.
Qed.

Lemma power_under M n : under_table k M (P 0%nat) ->
  under_table k (power_of down one k M n) (power k P 0 (Pos.to_nat n)).
Proof.
  intros H.
  assert (H1 : under_table k M (power k P 0 1))
    by (apply under_ext with (P 0%nat); [intros; now rewrite power_1|assumption]).
  induction n as [n IH|n IH|]; cbn [power_of]; [| |exact H1].
  - apply under_ext with (2 := product_under _ _ _ _ _ (product_under _ _ _ _ _ IH IH) H1).
    intros x z Hx Hz. replace (Pos.to_nat n~1) with (Pos.to_nat n + Pos.to_nat n + 1)%nat by lia.
    rewrite power_add by assumption. apply sum_ext; intros y Hy. now rewrite power_add.
  - apply under_ext with (2 := product_under _ _ _ _ _ IH IH). intros x z Hx Hz.
    replace (Pos.to_nat n~0) with (Pos.to_nat n + Pos.to_nat n)%nat by lia. now rewrite power_add.
Qed.

Lemma power_over M n : over_table k M (P 0%nat) ->
  over_table k (power_of up one k M n) (power k P 0 (Pos.to_nat n)).
Proof.
  intros H.
  assert (H1 : over_table k M (power k P 0 1))
    by (apply over_ext with (P 0%nat); [intros; now rewrite power_1|assumption]).
  induction n as [n IH|n IH|]; cbn [power_of]; [| |exact H1].
  - apply over_ext with (2 := product_over _ _ _ _ _ (product_over _ _ _ _ _ IH IH) H1).
    intros x z Hx Hz. replace (Pos.to_nat n~1) with (Pos.to_nat n + Pos.to_nat n + 1)%nat by lia.
    rewrite power_add by assumption. apply sum_ext; intros y Hy. now rewrite power_add.
  - apply over_ext with (2 := product_over _ _ _ _ _ IH IH). intros x z Hx Hz.
    replace (Pos.to_nat n~0) with (Pos.to_nat n + Pos.to_nat n)%nat by lia. now rewrite power_add.
Qed.
End products.

(* Every node has a quilt that fits. *)
Lemma covering_spec l : forall covered windows, covering covered windows l = true ->
  forall i, covered < i <= windows -> exists s, In s l /\ from s <= i <= upto s /\
    from s >= 1 + covered /\ upto s <= windows /\
    (forall n, to_left s = Some n -> Zpos n < from s) /\
    (forall n, to_right s = Some n -> Zpos n <= windows - upto s).
Proof.
  induction l as [|s l IH]; intros covered windows H i Hi; simpl in H; [apply Z.leb_le in H; lia|].
  repeat (let X := fresh "A" in apply andb_prop in H as [H X]).
  apply Z.eqb_eq in H. apply Z.leb_le in A3, A2.
  destruct (Z.le_gt_cases i (upto s)) as [Le|Gt].
  - exists s. repeat split; try lia; [now left| |].
    + intros n E. rewrite E in A1. now apply Z.ltb_lt.
    + intros n E. rewrite E in A0. now apply Z.leb_le.
  - destruct (IH _ _ A i ltac:(lia)) as (s' & In' & R & F & U & L1 & L2).
    exists s'. repeat split; try lia; try (now right); auto.
Qed.
