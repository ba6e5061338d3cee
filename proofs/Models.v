(* Checked models: matrices are stochastic, and the stationary weights are those of every
   stationary start. *)
From Coq Require Import Reals Lra Lia List Arith ZArith QArith Qreals Bool.
From Pufferflow Require Import Sums Chains Sides Reversal Stationary Numbers Claims Checker Steps.
Import ListNotations.
Open Scope R_scope.

Lemma Q2R_total l : Q2R (total_Q l) = fold_right Rplus 0 (map Q2R l).
Proof.
  induction l as [|a l IH]; simpl; [apply RMicromega.Q2R_0|]. now rewrite Q2R_plus, IH.
Qed.

Lemma fold_sum (F : nat -> Q) k :
  Q2R (total_Q (map F (seq 0 k))) = sum k (fun i => Q2R (F i)).
Proof.
  rewrite Q2R_total, map_map. induction k as [|k IH]; [reflexivity|].
  rewrite seq_S, map_app. simpl. rewrite <- IH.
  generalize (map (fun x => Q2R (F x)) (seq 0 k)) as l. intros l.
  induction l as [|a l IL]; simpl; [lra|]. rewrite IL. ring.
Qed.

Lemma list_as_map k (row : list Q) :
  length row = k -> map (fun i => nth i row 0%Q) (seq 0 k) = row.
Proof.
  intros <-. induction row as [|a row IH]; [reflexivity|]. simpl. f_equal.
  rewrite <- IH at 2. rewrite <- seq_shift, map_map. reflexivity.
Qed.

Lemma Q2R_Z z : Q2R (inject_Z z) = IZR z.
Proof. unfold Q2R; simpl. field. Qed.

Lemma Q2R_frac p : Q2R p = IZR (Qnum p) / IZR (Zpos (Qden p)).
Proof. reflexivity. Qed.

Lemma Q2R_nonneg p : (0 <= Qnum p)%Z -> 0 <= Q2R p.
Proof.
  intros H. rewrite Q2R_frac. apply Rmult_le_pos; [now apply IZR_le|].
  left. apply Rinv_0_lt_compat. now apply IZR_lt.
Qed.

Lemma Q2R_pos p : (0 < Qnum p)%Z -> 0 < Q2R p.
Proof.
  intros H. rewrite Q2R_frac. apply Rmult_lt_0_compat; [now apply IZR_lt|].
  apply Rinv_0_lt_compat. now apply IZR_lt.
Qed.

Lemma Q2R_down o p : (0 < o)%Z -> value o (down (o * Qnum p) (Zpos (Qden p))) <= Q2R p.
Proof.
  intros Ho. assert (0 < IZR o) by (now apply IZR_lt). rewrite Q2R_frac. unfold value.
  pose proof (down_le (o * Qnum p) (Zpos (Qden p)) eq_refl) as D. rewrite mult_IZR in D.
  apply Rmult_le_reg_r with (IZR o); [assumption|].
  replace (IZR (Qnum p) / IZR (Zpos (Qden p)) * IZR o)
    with (IZR o * IZR (Qnum p) / IZR (Zpos (Qden p))) by (unfold Rdiv; ring).
  replace (IZR (down (o * Qnum p) (Zpos (Qden p))) / IZR o * IZR o)
    with (IZR (down (o * Qnum p) (Zpos (Qden p)))) by (field; lra). exact D.
Qed.

Lemma Q2R_up o p : (0 < o)%Z -> Q2R p <= value o (up (o * Qnum p) (Zpos (Qden p))).
Proof.
  intros Ho. assert (0 < IZR o) by (now apply IZR_lt). rewrite Q2R_frac. unfold value.
  pose proof (up_ge (o * Qnum p) (Zpos (Qden p)) eq_refl) as D. rewrite mult_IZR in D.
  apply Rmult_le_reg_r with (IZR o); [assumption|].
  replace (IZR (Qnum p) / IZR (Zpos (Qden p)) * IZR o)
    with (IZR o * IZR (Qnum p) / IZR (Zpos (Qden p))) by (unfold Rdiv; ring).
  replace (IZR (up (o * Qnum p) (Zpos (Qden p))) / IZR o * IZR o)
    with (IZR (up (o * Qnum p) (Zpos (Qden p)))) by (field; lra). exact D.
Qed.

Lemma nth_table_map (f : Q -> Z) M x y :
  f 0%Q = 0%Z -> get (map (map f) M) x y = f (at_xy M x y).
Proof.
  intros H. unfold get, at_xy. change (@nil Z) with (map f []). rewrite map_nth.
  transitivity (nth y (map f (nth x M [])) (f 0%Q)); [now rewrite H|apply map_nth].
Qed.

Lemma nonneg_table E :
  forallb (forallb (Z.leb 0)) E = true -> Forall (Forall (fun b => (0 <= b)%Z)) E.
Proof.
  intros H. apply Forall_forall. intros row Hr. apply Forall_forall. intros b Hb.
  rewrite forallb_forall in H. specialize (H row Hr). rewrite forallb_forall in H.
  now apply Z.leb_le, H.
Qed.

Lemma get_seq (f : nat -> nat -> Z) k x y : (x < k)%nat -> (y < k)%nat ->
  get (map (fun x => map (fun z => f x z) (seq 0 k)) (seq 0 k)) x y = f x y.
Proof.
  intros Hx Hy. unfold get.
  rewrite nth_indep with (d' := map (fun z => f 0%nat z) (seq 0 k))
    by (rewrite map_length, seq_length; lia).
  rewrite (map_nth (fun x => map (fun z => f x z) (seq 0 k))), seq_nth by assumption. simpl.
  rewrite nth_indep with (d' := f x 0%nat) by (rewrite map_length, seq_length; lia).
  rewrite (map_nth (f x)), seq_nth by assumption. reflexivity.
Qed.

Section model.
Variable m : model.
Hypothesis ok : model_ok m = true.
Let k := states m.
Let N := period m.

Lemma states_pos : (0 < k)%nat.
Proof. pose proof ok as O. unfold model_ok in O. ands. assumption. Qed.

Lemma period_pos : (0 < N)%nat.
Proof.
  pose proof ok as O. unfold model_ok, states in O. ands. unfold N, period.
  destruct (matrices m); simpl in *; lia.
Qed.

Lemma row_facts p x : (x < k)%nat ->
  length (nth x (matrix m p) []) = k /\
  (forall y, (0 <= Qnum (at_xy (matrix m p) x y))%Z) /\
  sum k (entry (matrix m p) x) = 1.
Proof.
  intros Hx. pose proof ok as O. unfold model_ok in O. ands. rewrite forallb_forall in H0.
  assert (Hm : In (matrix m p) (matrices m)).
  { apply nth_In. apply Nat.mod_upper_bound. pose proof period_pos. unfold N, period in *. lia. }
  specialize (H0 _ Hm). unfold matrix_ok in H0. ands. rewrite forallb_forall in H1.
  assert (Hr : In (nth x (matrix m p) []) (matrix m p)) by (apply nth_In; unfold k in Hx; lia).
  specialize (H1 _ Hr). unfold row_ok in H1. ands. fold k in H1. split; [assumption|]. split.
  - intros y. unfold at_xy. rewrite forallb_forall in H3.
    destruct (Nat.lt_ge_cases y (length (nth x (matrix m p) []))) as [Ly|Ge].
    + apply Z.leb_le. apply H3. now apply nth_In.
    + rewrite nth_overflow by assumption. simpl. lia.
  - apply Qeq_bool_eq, Qeq_eqR in H2. rewrite RMicromega.Q2R_1 in H2. rewrite <- H2.
    rewrite <- (list_as_map k (nth x (matrix m p) [])) by assumption.
    now rewrite fold_sum.
Qed.

Variable phase : nat.
Let P := steps m phase.

Lemma P_nonneg t x y : (x < k)%nat -> (y < k)%nat -> 0 <= P t x y.
Proof.
  intros Hx Hy. apply Q2R_nonneg. now apply (row_facts (phase + t) x Hx).
Qed.

Lemma P_sum t x : (x < k)%nat -> sum k (P t x) = 1.
Proof. intros Hx. now apply row_facts. Qed.

Lemma matrix_mod p : matrix m (p mod N) = matrix m p.
Proof.
  unfold matrix. f_equal. fold N. pose proof period_pos. rewrite Nat.mod_mod; [reflexivity|lia].
Qed.

Lemma P_periodic t : P (t + N) = P t.
Proof.
  unfold P, steps. rewrite <- (matrix_mod (phase + (t + N))), <- (matrix_mod (phase + t)).
  pose proof period_pos. replace (phase + (t + N))%nat with (phase + t + 1 * N)%nat by lia.
  rewrite Nat.mod_add by lia. reflexivity.
Qed.

Lemma after_1 T n x : (x < k)%nat -> after k P T n x = 1.
Proof.
  revert x; induction n as [|n IH]; intros x Hx; simpl; [reflexivity|].
  rewrite <- (P_sum (T - 2 - n) x Hx). apply sum_ext; intros z Hz. rewrite IH by assumption. ring.
Qed.

Lemma forward_P T n x z : (x < k)%nat -> (z < k)%nat -> forward k P T n x z = P (T - 2 - n) x z.
Proof. intros Hx Hz. unfold forward. rewrite !after_1 by assumption. field. Qed.

Lemma forward_1 T n x : (x < k)%nat -> sums_to_1 k (forward k P T) n x.
Proof.
  revert x; induction n as [|n IH]; intros x Hx; unfold sums_to_1 in *; simpl; [reflexivity|].
  transitivity (sum k (P (T - 2 - n)%nat x)); [|now apply P_sum].
  apply sum_ext; intros z Hz. rewrite IH, forward_P by assumption. ring.
Qed.

(* -- the stationary start --------------------------------------------------------------------- *)

Variable q : nat -> R.
Hypothesis q_chain : chain k q P.
Hypothesis q_stationary : forall x, (x < k)%nat -> before k q P N x = q x.
Variable pis : list (list Z).
Hypothesis pis_ok : stationary_ok m pis = true.
Variable l : list (nat * nat).
Hypothesis l_ok : unique_ok m pis l = true.

Let at_time t := ((phase + t) mod N)%nat.
Let w t x := IZR (weight (weights pis (at_time t)) x).

Lemma at_time_below t : (at_time t < N)%nat.
Proof. apply Nat.mod_upper_bound. pose proof period_pos. lia. Qed.

Lemma at_time_next t : at_time (S t) = (S (at_time t) mod N)%nat.
Proof.
  unfold at_time. pose proof period_pos. rewrite Nat.add_succ_r, <- (Nat.add_1_r (_ + _)).
  rewrite <- (Nat.add_1_r (_ mod _)). rewrite Nat.add_mod_idemp_l by lia. reflexivity.
Qed.

Lemma w_nonneg t x : 0 <= w t x.
Proof.
  pose proof pis_ok as O. unfold stationary_ok in O. ands. specialize (O _ (at_time_below t)). ands.
  unfold w, weight. destruct (Nat.lt_ge_cases x (length (weights pis (at_time t)))) as [Lx|Ge].
  - apply IZR_le. rewrite forallb_forall in H. apply Z.leb_le, H. now apply nth_In.
  - rewrite nth_overflow by assumption. lra.
Qed.

Lemma w_evolves t x : (x < k)%nat -> w (S t) x = sum k (fun z => w t z * P t z x).
Proof.
  intros Hx. pose proof pis_ok as O. unfold stationary_ok in O. ands.
  specialize (O _ (at_time_below t)). ands.
  specialize (H0 x Hx). apply Qeq_bool_eq, Qeq_eqR in H0.
  rewrite fold_sum, Q2R_Z in H0. unfold w. rewrite at_time_next. fold N in H0. rewrite <- H0.
  fold k. apply sum_ext; intros z Hz. rewrite Q2R_mult, Q2R_Z.
  unfold at_time. rewrite matrix_mod. reflexivity.
Qed.

Lemma before_periodic t x : (x < k)%nat -> before k q P (t + N) x = before k q P t x.
Proof.
  revert x; induction t as [|t IH]; intros x Hx; [simpl; auto|]. simpl.
  apply sum_ext; intros z Hz. rewrite IH, P_periodic by assumption. reflexivity.
Qed.

Lemma before_mass t : sum k (before k q P t) = 1.
Proof.
  induction t as [|t IH]; [apply q_chain|]. simpl. rewrite sum_swap. rewrite <- IH.
  apply sum_ext; intros z Hz. rewrite sum_scale. change (fun i => P t z i) with (P t z).
  rewrite P_sum by assumption. ring.
Qed.

Theorem stationary_weights : exists a, 0 < a /\
  forall t x, (x < k)%nat -> before k q P t x = a * w t x.
Proof.
  pose proof l_ok as O. unfold unique_ok in O. destruct l as [|[p0 r] l']; [discriminate|].
  apply andb_prop in O as [O Lead]. apply andb_prop in O as [O Pr]. apply andb_prop in O as [Hp Hr].
  apply Nat.ltb_lt in Hp, Hr. apply Z.ltb_lt in Pr. fold N in Hp. fold k in Hr.
  pose proof period_pos as Np.
  pose (t0 := (p0 + (N - phase mod N))%nat).
  assert (T0 : at_time t0 = p0).
  { unfold at_time, t0. rewrite <- (Nat.add_mod_idemp_l phase) by lia.
    pose proof (Nat.mod_upper_bound phase N ltac:(lia)).
    replace (phase mod N + (p0 + (N - phase mod N)))%nat with (p0 + 1 * N)%nat by lia.
    rewrite Nat.mod_add by lia. now apply Nat.mod_small. }
  assert (W0 : 0 < w t0 r) by (unfold w; rewrite T0; now apply IZR_lt).
  pose (a := before k q P t0 r / w t0 r).
  pose (d := fun t x => before k q P t x - a * w t x).
  assert (Ev : forall t x, (x < k)%nat -> d (S t) x = sum k (fun z => d t z * P t z x)).
  { intros t x Hx. unfold d. rewrite w_evolves by assumption. simpl. rewrite <- sum_scale.
    replace (sum k (fun z => before k q P t z * P t z x)
             - sum k (fun i => a * (w t i * P t i x)))
      with (sum k (fun z => before k q P t z * P t z x)
            + -1 * sum k (fun i => a * (w t i * P t i x))) by ring.
    rewrite <- sum_scale, <- sum_plus. apply sum_ext; intros; ring. }
  assert (Pe : forall t x, (x < k)%nat -> d (t + N)%nat x = d t x).
  { intros t x Hx. unfold d. rewrite before_periodic by assumption. unfold w. f_equal.
    unfold at_time. replace (phase + (t + N))%nat with (phase + t + 1 * N)%nat by lia.
    rewrite Nat.mod_add by lia. reflexivity. }
  pose (zero := fun place : nat * nat => (snd place < k)%nat /\
    forall t, at_time t = fst place -> d t (snd place) = 0).
  assert (Z0 : zero (p0, r)).
  { split; [assumption|]. intros t Ht. simpl in *.
    rewrite (same_phase k N d Np Pe phase t t0) by (auto; unfold at_time in *; congruence).
    unfold d, a. field. lra. }
  assert (All : forall todo known, leads m known todo = true -> Forall zero known ->
    forall p x, (p < N)%nat -> (x < k)%nat -> zero (p, x)).
  { induction todo as [|[p z] todo IH]; intros known L Zs.
    - intros p x Hp' Hx. simpl in L. ands. specialize (L p Hp'). ands. specialize (L x Hx).
      apply existsb_exists in L. destruct L as [[p' x'] [In1 E]].
      apply andb_prop in E as [E1 E2]. apply Nat.eqb_eq in E1, E2. cbn [fst snd] in E1, E2.
      rewrite <- E1, <- E2. rewrite Forall_forall in Zs. now apply Zs.
    - simpl in L. apply andb_prop in L as [L Next]. apply andb_prop in L as [L Some1].
      apply andb_prop in L as [_ Hz]. apply Nat.ltb_lt in Hz. fold k in Hz.
      apply IH with (1 := Next). constructor; [|assumption].
      apply existsb_exists in Some1. destruct Some1 as [[p' x'] [In1 E]].
      apply andb_prop in E as [E1 E2]. apply Nat.eqb_eq in E1. apply Z.ltb_lt in E2.
      cbn [fst snd] in *. fold N in E1. rewrite Forall_forall in Zs.
      destruct (Zs _ In1) as [Hx' Dz]. cbn [fst snd] in *.
      split; [exact Hz|]. intros t Ht. cbn [fst snd] in *.
      apply zero_before with (k := k) (N := N) (P := P) (x := x'); auto.
      + intros; now apply P_nonneg.
      + intros; now apply P_sum.
      + apply Dz. rewrite at_time_next, Ht. congruence.
      + unfold P, steps. rewrite <- matrix_mod. fold (at_time t). rewrite Ht.
        now apply Q2R_pos. }
  assert (Eq : forall t x, (x < k)%nat -> before k q P t x = a * w t x).
  { intros t x Hx. destruct (All _ _ Lead ltac:(repeat constructor; apply Z0) (at_time t) x
      (at_time_below t) Hx) as [_ D].
    specialize (D t eq_refl). simpl in D. unfold d in D. lra. }
  exists a. split; [|assumption].
  assert (S1 : a * sum k (w 0) = 1).
  { rewrite <- sum_scale, <- (before_mass 0). symmetry. apply sum_ext; intros; now apply Eq. }
  assert (0 <= sum k (w 0)) by (apply sum_nonneg; intros; apply w_nonneg).
  destruct (Rlt_le_dec 0 a) as [|Na]; [assumption|]. nra.
Qed.
End model.
