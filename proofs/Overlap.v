(* Mixing families: nothing is known of a chain but that distributions m steps apart overlap. *)
From Coq Require Import Reals Lra Lia List Arith ZArith QArith Qreals Bool Psatz.
From Pufferflow Require Import Sums Chains Sides Reversal Segments Blocks Numbers Claims Checker
  Steps Models.
Import ListNotations.
Open Scope R_scope.

(* Distributions p and q that overlap by a; F is within a factor H where they have mass. *)
Section overlap.
Variable k : nat.
Variables p q F : nat -> R.
Variables a H : R.
Hypothesis p_nonneg : forall z, (z < k)%nat -> 0 <= p z.
Hypothesis q_nonneg : forall z, (z < k)%nat -> 0 <= q z.
Hypothesis p_sum : sum k p = 1.
Hypothesis q_sum : sum k q = 1.
Hypothesis F_nonneg : forall z, (z < k)%nat -> 0 <= F z.
Hypothesis H1 : 1 <= H.
Hypothesis a1 : a <= 1.
Hypothesis common : a <= sum k (fun z => Rmin (p z) (q z)).
Hypothesis near : forall z y, (z < k)%nat -> (y < k)%nat -> 0 < p z + q z -> 0 < p y + q y ->
  F z <= H * F y.

Lemma least n : (n <= k)%nat ->
  (forall z, (z < n)%nat -> p z + q z <= 0) \/
  exists y, (y < n)%nat /\ 0 < p y + q y /\
    forall z, (z < n)%nat -> 0 < p z + q z -> F y <= F z.
Proof.
  induction n as [|n IH]; intros Hn; [left; intros; lia|].
  destruct (Rlt_le_dec 0 (p n + q n)) as [Pn|Pn].
  - right. destruct IH as [No|(m & Hm & Pm & Min)]; [lia| |].
    + exists n. split; [lia|]. split; [assumption|]. intros z Hz Pz.
      destruct (Nat.eq_dec z n) as [->|Ne]; [lra|].
      assert (Hz' : (z < n)%nat) by lia. specialize (No z Hz'). lra.
    + destruct (Rle_dec (F m) (F n)) as [Le|Gt].
      * exists m. split; [lia|]. split; [assumption|]. intros z Hz Pz.
        destruct (Nat.eq_dec z n) as [->|Ne]; [lra|]. apply Min; [lia|assumption].
      * exists n. split; [lia|]. split; [assumption|]. intros z Hz Pz.
        destruct (Nat.eq_dec z n) as [->|Ne]; [lra|].
        assert (Hz' : (z < n)%nat) by lia. specialize (Min z Hz' Pz). lra.
  - destruct IH as [No|(m & Hm & Pm & Min)]; [lia| |].
    + left. intros z Hz. destruct (Nat.eq_dec z n) as [->|Ne]; [assumption|]. apply No. lia.
    + right. exists m. split; [lia|]. split; [assumption|]. intros z Hz Pz.
      destruct (Nat.eq_dec z n) as [->|Ne]; [lra|]. apply Min; [lia|assumption].
Qed.

Theorem overlap_bound :
  sum k (fun z => p z * F z) <= (a + (1 - a) * H) * sum k (fun z => q z * F z).
Proof.
  destruct (least k (le_n k)) as [No|(y & Hy & Py & Min)].
  { assert (sum k (fun z => p z + q z) <= sum k (fun _ => 0)) by (now apply sum_le).
    rewrite sum_plus, p_sum, q_sum, sum_zero in H0. lra. }
  set (m := F y) in *. assert (M0 : 0 <= m) by (now apply F_nonneg).
  pose (r := fun z => Rmin (p z) (q z)).
  assert (r_le : forall z, r z <= p z /\ r z <= q z)
    by (intros z; split; [apply Rmin_l|apply Rmin_r]).
  assert (r_nonneg : forall z, (z < k)%nat -> 0 <= r z)
    by (intros z Hz; apply Rmin_glb; auto).
  set (b := sum k r). fold (sum k r) in common. change (a <= b) in common.
  assert (B1 : b <= 1) by (rewrite <- p_sum; apply sum_le; intros; apply r_le).
  set (S := sum k (fun z => r z * F z)).
  assert (Low : b * m <= S).
  { unfold b. rewrite Rmult_comm, <- sum_scale. apply sum_le; intros z Hz.
    specialize (r_nonneg z Hz).
    destruct (Rlt_le_dec 0 (p z + q z)) as [Pz|Pz].
    - specialize (Min z Hz Pz). fold m in Min. nra.
    - pose proof (p_nonneg z Hz). pose proof (proj1 (r_le z)). pose proof (q_nonneg z Hz).
      assert (r z = 0) as -> by lra. lra. }
  assert (UpP : sum k (fun z => p z * F z) <= S + (1 - b) * (H * m)).
  { replace (1 - b) with (sum k (fun z => p z + - 1 * r z))
      by (rewrite sum_plus, sum_scale, p_sum; unfold b; ring).
    rewrite Rmult_comm, <- sum_scale. unfold S. rewrite <- sum_plus. apply sum_le; intros z Hz.
    pose proof (proj1 (r_le z)).
    destruct (Rlt_le_dec 0 (p z + q z)) as [Pz|Pz].
    - assert (F z <= H * m) by (now apply near). nra.
    - pose proof (p_nonneg z Hz). pose proof (q_nonneg z Hz). specialize (r_nonneg z Hz).
      assert (p z = 0) as -> by lra. assert (r z = 0) as -> by lra. lra. }
  assert (LowQ : S + (1 - b) * m <= sum k (fun z => q z * F z)).
  { replace (1 - b) with (sum k (fun z => q z + - 1 * r z))
      by (rewrite sum_plus, sum_scale, q_sum; unfold b; ring).
    rewrite Rmult_comm, <- sum_scale. unfold S. rewrite <- sum_plus. apply sum_le; intros z Hz.
    pose proof (proj2 (r_le z)).
    destruct (Rlt_le_dec 0 (p z + q z)) as [Pz|Pz].
    - specialize (Min z Hz Pz). fold m in Min. nra.
    - pose proof (p_nonneg z Hz). pose proof (q_nonneg z Hz). specialize (r_nonneg z Hz).
      assert (q z = 0) as -> by lra. assert (r z = 0) as -> by lra. lra. }
  apply Rle_trans with (1 := UpP).
  assert (L1 : 1 <= a + (1 - a) * H) by nra.
  apply Rle_trans with ((a + (1 - a) * H) * (S + (1 - b) * m));
    [|apply Rmult_le_compat_l; lra].
  assert (E : b + (1 - b) * H <= a + (1 - a) * H) by nra.
  assert (0 <= (1 - b) * m) by (apply Rmult_le_pos; lra).
  assert (0 <= b).
  { apply sum_nonneg; auto. }
  assert (S + (1 - b) * (H * m) <= (b + (1 - b) * H) * (S + (1 - b) * m)).
  { assert (0 <= (b + (1 - b) * H - 1) * (S - b * m)) by (apply Rmult_le_pos; nra). nra. }
  assert (0 <= S + (1 - b) * m) by nra. nra.
Qed.
End overlap.

(* E(n) bounds what any two values of a node with n nodes on this side reveal. *)
Section recursion.
Variable k : nat.
Variable C : R.
Hypothesis C1 : 1 <= C.
Variable K : nat -> nat -> nat -> R.
Hypothesis K_nonneg : forall n x z, (x < k)%nat -> (z < k)%nat -> 0 <= K n x z.
Variable mass : nat -> nat -> R.          (* 0 for values that a node cannot have *)
Variable N m : nat.
Variable a : R.
Hypothesis a1 : a <= 1.
Variable can : nat -> nat -> bool.        (* the values that a node can have *)
Variable D : nat -> nat -> nat -> R.      (* the distribution S m steps on, n nodes beyond it *)
Hypothesis can_sum : forall n x, (n <= N)%nat -> (x < k)%nat -> can n x = true ->
  sums_to_1 k K n x.
Hypothesis D_facts : forall n x, (S m + n <= N)%nat -> (x < k)%nat -> can (S m + n) x = true ->
  (forall F, through k K (S m) n x F = sum k (fun z => D n x z * F z)) /\
  (forall z, (z < k)%nat -> 0 <= D n x z) /\ sum k (D n x) = 1 /\
  (forall z, (z < k)%nat -> 0 < D n x z -> can n z = true).
Hypothesis possible_mass : forall n x, (x < k)%nat -> can n x = true -> 0 < mass n x.
Hypothesis D_overlap : forall n x y, (S m + n <= N)%nat -> (x < k)%nat -> (y < k)%nat ->
  can (S m + n) x = true -> can (S m + n) y = true ->
  a <= sum k (fun z => Rmin (D n x z) (D n y z)).
Variable e : nat -> R.
Hypothesis e_early : forall n, (n <= N)%nat -> (n < S m)%nat -> C ^ n <= e n.
Hypothesis e_1 : forall n, (n <= N)%nat -> 1 <= e n.
Hypothesis e_late : forall n, (S m + n <= N)%nat ->
  C ^ m * (a + (1 - a) * (C * e n)) <= e (S m + n)%nat.

Definition flat (n x y : nat) : R := if can n x && can n y then e n else 0.

Lemma flat_pos n x y : 0 < flat n x y -> can n x = true /\ can n y = true /\ flat n x y = e n.
Proof. unfold flat. destruct (can n x), (can n y); simpl; intros; try lra; auto. Qed.

Theorem flat_bounds n : (n <= N)%nat -> bounds k C K mass n (flat n).
Proof.
  induction n as [n IH] using lt_wf_ind. intros Hn x y g Hx Hy _ _ Pos L.
  destruct (flat_pos n x y Pos) as (Cx & Cy & ->).
  assert (Pg : 0 <= beyond k K n y g) by (apply beyond_nonneg; auto; intro; apply L).
  destruct (Nat.lt_ge_cases n (S m)) as [Lt|Ge].
  - apply Rle_trans with (1 := Sides.count k C C1 K K_nonneg n x y g Hx Hy
      (can_sum n x Hn Hx Cx) (can_sum n y Hn Hy Cy) L).
    apply Rmult_le_compat_r; auto.
  - assert (exists i, n = (S m + i)%nat) as [i ->] by (exists (n - S m)%nat; lia).
    assert (Hi : (i <= N)%nat) by lia. assert (Hl : (i < S m + i)%nat) by lia.
    destruct (block k C C1 K K_nonneg mass m i (flat i) g (IH i Hl Hi) L) as (F & [Fp Fg] & B).
    destruct (B x Hx) as [Bx _]. destruct (B y Hy) as [_ By].
    destruct (D_facts i x Hn Hx Cx) as (Tx & Px & Sx & Rx).
    destruct (D_facts i y Hn Hy Cy) as (Ty & Py & Sy & Ry).
    assert (E1 := e_1 i Hi).
    assert (O : sum k (fun z => D i x z * F z)
      <= (a + (1 - a) * (C * e i)) * sum k (fun z => D i y z * F z)).
    { apply overlap_bound; auto; [nra|].
      intros z v Hz Hv Pz Pv.
      assert (Cz : can i z = true).
      { destruct (Rlt_le_dec 0 (D i x z)); [auto|]. apply Ry; [assumption|]. lra. }
      assert (Cv : can i v = true).
      { destruct (Rlt_le_dec 0 (D i x v)); [auto|]. apply Ry; [assumption|]. lra. }
      assert (Fl : flat i z v = e i) by (unfold flat; now rewrite Cz, Cv).
      specialize (Fg z v Hz Hv). rewrite Fl in Fg. apply Fg; [now apply possible_mass..|nra]. }
    rewrite <- Tx, <- Ty in O.
    assert (Lam : 0 <= a + (1 - a) * (C * e i)).
    { assert (1 <= C * e i) by nra. nra. }
    apply Rle_trans with (1 := Bx). apply Rle_trans with (1 := O).
    apply Rle_trans with ((a + (1 - a) * (C * e i)) * (C ^ m * beyond k K (S m + i) y g)).
    + now apply Rmult_le_compat_l.
    + rewrite <- Rmult_assoc. apply Rmult_le_compat_r; [assumption|].
      rewrite Rmult_comm. now apply e_late.
Qed.
End recursion.

(* -- both sides of a chain ------------------------------------------------------------------ *)

Section chain.
Variable k : nat.
Variable q : nat -> R.
Variable P : nat -> nat -> nat -> R.
Hypothesis Ch : chain k q P.

Let P_nonneg := proj1 (proj2 (proj2 Ch)).
Let P_sum := proj2 (proj2 (proj2 Ch)).
Let q_nonneg := proj1 Ch.

Lemma after_one T n x : (x < k)%nat -> after k P T n x = 1.
Proof.
  revert x; induction n as [|n IH]; intros x Hx; simpl; [reflexivity|].
  rewrite <- (P_sum (T - 2 - n)%nat x Hx). apply sum_ext; intros z Hz. rewrite IH by assumption.
  ring.
Qed.

Lemma forward_is T n x z : (x < k)%nat -> (z < k)%nat -> forward k P T n x z = P (T - 2 - n)%nat x
  z.
Proof. intros Hx Hz. unfold forward. rewrite !after_one by assumption. field. Qed.

Lemma power_sum m : forall t x, (x < k)%nat -> sum k (power k P t m x) = 1.
Proof.
  induction m as [|m IH]; intros t x Hx; cbn [power].
  - transitivity (sum k (fun y => (if (x =? y)%nat then 1 else 0) * (fun _ => 1) y)).
    + apply sum_ext; intros; ring.
    + now rewrite sum_one.
  - rewrite sum_swap. rewrite <- (IH t x Hx). apply sum_ext; intros y Hy.
    rewrite sum_scale. change (fun i => P (t + m)%nat y i) with (P (t + m)%nat y).
    rewrite P_sum by assumption. ring.
Qed.

Lemma before_power t m x : (x < k)%nat ->
  before k q P (t + m) x = sum k (fun z => before k q P t z * power k P t m z x).
Proof.
  revert x; induction m as [|m IH]; intros x Hx; cbn [power].
  - rewrite Nat.add_0_r.
    rewrite (sum_ext k _ (fun z => (if (x =? z)%nat then 1 else 0) * before k q P t z)).
    + now rewrite sum_one.
    + intros z _. rewrite Nat.eqb_sym. ring.
  - rewrite Nat.add_succ_r. cbn [before].
    rewrite (sum_ext k (fun z => before k q P t z * sum k (fun y => power k P t m z y
      * P (t + m)%nat y x)) (fun z => sum k (fun y => before k q P t z * power k P t m z y
      * P (t + m)%nat y x))).
    + rewrite sum_swap. apply sum_ext; intros y Hy. rewrite IH by assumption.
      rewrite Rmult_comm, <- sum_scale. apply sum_ext; intros; ring.
    + intros z Hz. rewrite <- sum_scale. apply sum_ext; intros; ring.
Qed.

Lemma before_pos_power t m x z : (x < k)%nat -> (z < k)%nat ->
  0 < before k q P t x -> 0 < power k P t m x z -> 0 < before k q P (t + m) z.
Proof.
  intros Hx Hz Pb Pp. rewrite before_power by assumption.
  apply Rlt_le_trans with (before k q P t x * power k P t m x z); [now apply Rmult_lt_0_compat|].
  apply (sum_term k (fun y => before k q P t y * power k P t m y z)); [|assumption].
  intros y Hy. apply Rmult_le_pos; [now apply before_nonneg|now apply power_nonneg].
Qed.

Definition possible (t x : nat) : bool := if Rlt_dec 0 (before k q P t x) then true else false.

Lemma possible_spec t x : possible t x = true <-> 0 < before k q P t x.
Proof. unfold possible. destruct (Rlt_dec 0 (before k q P t x)); split; auto; discriminate. Qed.

Variable T m : nat.
Variable a : R.
Hypothesis mix : mixes k q P T (S m) a.
Hypothesis a1 : a <= 1.
Variable C : R.
Hypothesis C1 : 1 <= C.
Variable e : nat -> R.
Variable N : nat.
Hypothesis N_T : (N < T)%nat.
Hypothesis e_early : forall n, (n <= N)%nat -> (n < S m)%nat -> C ^ n <= e n.
Hypothesis e_1 : forall n, (n <= N)%nat -> 1 <= e n.
Hypothesis e_late : forall n, (S m + n <= N)%nat ->
  C ^ m * (a + (1 - a) * (C * e n)) <= e (S m + n)%nat.

Let at_n n x := possible (T - 1 - n) x.

Lemma forward_flat n : (n <= N)%nat -> bounds k C (forward k P T) (after k P T) n (flat at_n e n).
Proof.
  apply flat_bounds with (m := m) (a := a) (N := N)
    (D := fun n x z => power k P (T - 1 - n - S m) (S m) x z); auto.
  - intros; now apply forward_nonneg.
  - intros i x Hi Hx Cx. apply forward_sums_to_1; auto; [lia|]. rewrite after_one by assumption.
    lra.
  - intros i x Hi Hx Cx. repeat split.
    + intros F. apply forward_through; auto; [lia|]. intros; now apply forward_is.
    + intros z Hz. now apply power_nonneg.
    + now apply power_sum.
    + intros z Hz Pz. unfold at_n in *. rewrite possible_spec in *.
      replace (T - 1 - i)%nat with (T - 1 - i - S m + S m)%nat by lia.
      apply before_pos_power with x; auto. now replace (T - 1 - i - S m)%nat
        with (T - 1 - (S m + i))%nat by lia.
  - intros i x Hx _. rewrite after_one by assumption. lra.
  - intros i x y Hi Hx Hy Cx Cy. unfold at_n in *. rewrite possible_spec in *.
    assert (Ht : (T - 1 - i - S m + S m < T)%nat) by lia.
    destruct (mix (T - 1 - i - S m)%nat x y Ht Hx Hy) as [M _]. apply M;
      now replace (T - 1 - i - S m)%nat with (T - 1 - (S m + i))%nat by lia.
Qed.

Lemma backward_flat n : (n <= N)%nat -> bounds k C (backward k q P) (before k q P) n (flat possible
  e n).
Proof.
  apply flat_bounds with (m := m) (a := a) (N := N)
    (D := fun n x z => before k q P n z * power k P n (S m) z x / before k q P (n + S m) x); auto.
  - intros; now apply backward_nonneg.
  - intros i x Hi Hx Cx. rewrite possible_spec in Cx. now apply backward_sums_to_1.
  - intros i x Hi Hx Cx. rewrite possible_spec in Cx.
    replace (S m + i)%nat with (i + S m)%nat in Cx by lia.
    assert (Nb := fun z Hz => before_nonneg k q P q_nonneg P_nonneg i z Hz).
    assert (Nd : forall z, (z < k)%nat ->
      0 <= before k q P i z * power k P i (S m) z x / before k q P (i + S m) x).
    { intros z Hz. apply div_nonneg; [|lra]. apply Rmult_le_pos; [auto|now apply power_nonneg]. }
    repeat split; [|assumption| |].
    + intros F. pose proof (backward_through k P q Ch i (S m) x F Hx) as B.
      replace (S m + i)%nat with (i + S m)%nat in B by lia.
      apply Rmult_eq_reg_l with (before k q P (i + S m) x); [|lra].
      rewrite B, <- sum_scale. apply sum_ext; intros z Hz. field. lra.
    + rewrite (sum_ext k _ (fun z => / before k q P (i + S m) x
        * (before k q P i z * power k P i (S m) z x))) by (intros; unfold Rdiv; ring).
      rewrite sum_scale, <- before_power by assumption. field. lra.
    + intros z Hz Pz. rewrite possible_spec. destruct (Nb z Hz) as [|Z]; [assumption|].
      rewrite <- Z in Pz. unfold Rdiv in Pz. rewrite !Rmult_0_l in Pz. lra.
  - intros i x _ Cx. now apply possible_spec.
  - intros i x y Hi Hx Hy Cx Cy. rewrite possible_spec in Cx, Cy.
    replace (S m + i)%nat with (i + S m)%nat in * by lia.
    assert (Ht : (i + S m < T)%nat) by lia.
    destruct (mix i x y Ht Hx Hy) as [_ M]. now apply M.
Qed.
End chain.
