(* A chain with one matrix seen from its nodes, whatever the start: Lemmas 6 and 7. *)
From Coq Require Import Reals Lra Lia List Arith ZArith QArith Qreals Bool Classical.
From Pufferflow Require Import Sums Chains Sides Reversal Segments Blocks Numbers Claims Checker
  Steps Models Overlap Quilts.
Import ListNotations.
Open Scope R_scope.

Lemma backward_zero k q P n x z : (forall x, (x < k)%nat -> 0 <= q x) ->
  (forall t x y, (x < k)%nat -> (y < k)%nat -> 0 <= P t x y) -> (z < k)%nat ->
  ~ 0 < before k q P n z -> backward k q P n x z = 0.
Proof.
  intros Hq HP Hz N. pose proof (before_nonneg k q P Hq HP n z Hz).
  unfold backward. replace (before k q P n z) with 0 by lra. unfold Rdiv. ring.
Qed.

Lemma nodes_length o k M N : forall lo hi, length (nodes o k M lo hi N) = N.
Proof. induction N as [|N IH]; intros lo hi; simpl; [reflexivity|]. now rewrite IH. Qed.

Lemma one_value o : (0 < o)%Z -> value o o = 1.
Proof. intros H. unfold value. assert (0 < IZR o) by (now apply IZR_lt). field. lra. Qed.

Section model.
Variable m : model.
Hypothesis ok : model_ok m = true.
Variable o : Z.
Hypothesis one_pos : (0 < o)%Z.
Variable C : R.
Hypothesis C1 : 1 <= C.
Variable phase : nat.
Variable q : nat -> R.
Let k := states m.
Let P := steps m phase.
Hypothesis Ch : chain k q P.

Lemma forward_enclosed T n p E :
  (forall x z, (x < k)%nat -> (z < k)%nat -> P (T - 2 - n)%nat x z
    = Q2R (at_xy (matrix m p) x z)) ->
  forallb (forallb (Z.leb 0)) (low (forward_rows o (matrix m p))) = true ->
  enclosed o k C (forward k P T) (after k P T) n E (forward_rows o (matrix m p)).
Proof.
  intros Eq Low. split; [now apply nonneg_table|]. split.
  { intros y Hy _. unfold P. rewrite (after_1 m ok) by assumption. lra. }
  apply seen_exact; auto.
  - intros; now apply forward_nonneg; try apply Ch.
  - intros x z Hx Hz N. exfalso. apply N. unfold P. rewrite (after_1 m ok) by assumption. lra.
  - intros x z Hx _ _ Hz. unfold P. rewrite (forward_P m ok) by assumption.
    fold P. rewrite Eq by assumption. unfold real. simpl. rewrite !nth_table_map.
    + split; [now apply Q2R_down|now apply Q2R_up].
    + simpl. rewrite Z.mul_0_r. reflexivity.
    + simpl. rewrite Z.mul_0_r. reflexivity.
Qed.

Lemma backward_enclosed n p pi pi' s E :
  0 < s ->
  (forall x, (x < k)%nat -> before k q P n x = s * IZR (weight pi x)) ->
  (forall x, (x < k)%nat -> before k q P (S n) x = s * IZR (weight pi' x)) ->
  (forall x z, (x < k)%nat -> (z < k)%nat -> P n x z = Q2R (at_xy (matrix m p) x z)) ->
  forallb (forallb (Z.leb 0)) (low (backward_rows o k (matrix m p) pi pi')) = true ->
  enclosed o k C (backward k q P) (before k q P) n E (backward_rows o k (matrix m p) pi pi').
Proof.
  intros Hs B1 B2 Eq Low. split; [now apply nonneg_table|]. split.
  { intros y Hy Ny. rewrite B1 by assumption. apply Z.ltb_lt, IZR_lt in Ny. nra. }
  apply seen_exact; auto.
  - intros; now apply backward_nonneg; try apply Ch.
  - intros x z Hx Hz N. now apply backward_zero; try apply Ch.
  - intros x z Hx Kn _ Hz. simpl in Kn. apply Z.ltb_lt in Kn.
    assert (Px : 0 < IZR (weight pi' x)) by (now apply IZR_lt).
    assert (Po : 0 < IZR o) by (now apply IZR_lt).
    unfold backward. rewrite B1, B2, Eq by assumption. unfold real. simpl.
    rewrite !get_seq by assumption. set (p0 := at_xy (matrix m p) z x).
    assert (Pd : 0 < IZR (Zpos (Qden p0))) by (now apply IZR_lt).
    assert (Pz : (0 < Zpos (Qden p0) * weight pi' x)%Z) by lia.
    assert (V : s * IZR (weight pi z) * Q2R p0 / (s * IZR (weight pi' x))
      = IZR (o * (weight pi z * Qnum p0)) / IZR (Zpos (Qden p0) * weight pi' x) / IZR o).
    { rewrite Q2R_frac, !mult_IZR. field. repeat split; lra. }
    rewrite V. unfold value. split; apply Rmult_le_compat_r;
      try (left; now apply Rinv_0_lt_compat); [now apply down_le|now apply up_ge].
Qed.

Lemma no_rows_enclosed K mass n E : enclosed o k C K mass n E no_rows.
Proof.
  split; [constructor|]. split; [discriminate|]. intros g _ _. exists (fun _ => 0), (fun _ _ => 0).
  split; [split; intros; lra|]. split; [reflexivity|]. split; discriminate.
Qed.

(* -- one matrix ------------------------------------------------------------------------------- *)

Hypothesis one_matrix : period m = 1%nat.
Let M := matrix m 0.

Lemma matrix_0 p : matrix m p = M.
Proof. unfold M, matrix. now rewrite one_matrix, !Nat.mod_1_r. Qed.

Lemma P_is t x z : P t x z = Q2R (at_xy M x z).
Proof. unfold P, steps. now rewrite matrix_0. Qed.

Lemma P_same t : P t = P 0%nat.
Proof. unfold P, steps. now rewrite !matrix_0. Qed.

Lemma matrix_length : length M = k.
Proof.
  pose proof ok as O. unfold model_ok in O. apply andb_prop in O as [_ O].
  rewrite forallb_forall in O. assert (I : In M (matrices m)).
  { apply nth_In. rewrite one_matrix. unfold period in one_matrix. rewrite one_matrix. simpl. lia. }
  specialize (O M I). unfold matrix_ok in O. apply andb_prop in O as [O _].
  now apply Nat.eqb_eq in O.
Qed.

Lemma entries_nonneg x y : (x < k)%nat -> (0 <= Qnum (at_xy M x y))%Z.
Proof. intros Hx. now apply (row_facts m ok 0 x Hx). Qed.

Lemma powers_below n : under_table o k k (low (rows_after o k M n)) (power k P 0 (Pos.to_nat n)).
Proof.
  apply power_under; auto; [apply P_same|].
    split; [simpl; rewrite map_length; apply matrix_length|].
  intros x z Hx Hz. simpl. unfold real. rewrite nth_table_map.
  - split; [apply down_nonneg; [|reflexivity]; pose proof (entries_nonneg x z Hx); nia|].
    rewrite P_is. now apply Q2R_down.
  - simpl. rewrite Z.mul_0_r. reflexivity.
Qed.

Lemma powers_above n : over_table o k k (high (rows_after o k M n)) (power k P 0 (Pos.to_nat n)).
Proof.
  apply power_over; auto; [apply P_same|]. split; [simpl; rewrite map_length; apply matrix_length|].
  intros x z Hx Hz. simpl. unfold real. rewrite nth_table_map.
  - rewrite P_is. split; [now apply Q2R_nonneg, entries_nonneg|]. now apply Q2R_up.
  - simpl. rewrite Z.mul_0_r. reflexivity.
Qed.

(* -- Lemma 6 ---------------------------------------------------------------------------------- *)

Section mixed.
Variable l : list (positive * (table * table)).
Hypothesis l_ok : roots_ok o k M l = true.

Lemma mixed_weights turned may n mx : mixed_of l turned may n = Some mx ->
  Checker.may mx = may /\ forall x z, (x < k)%nat -> (z < k)%nat ->
  let A := if turned then power k P 0 (Pos.to_nat n) z x else power k P 0 (Pos.to_nat n) x z in
  (0 <= root_up mx x z)%Z /\ (0 <= root_down mx x z)%Z /\ 0 <= A /\
  value o (root_down mx x z) * value o (root_down mx x z) <= A /\
  A <= value o (root_up mx x z) * value o (root_up mx x z).
Proof.
  unfold mixed_of. destruct (find _ l) as [p|] eqn:F; [|discriminate]. intros [= <-].
  split; [reflexivity|]. apply find_some in F as [In1 En]. apply Pos.eqb_eq in En.
  pose proof l_ok as O. unfold roots_ok in O. rewrite forallb_forall in O. specialize (O p In1).
  cbv zeta in O. rewrite En, every_spec in O.
  assert (Po : 0 < IZR o) by (now apply IZR_lt).
  assert (Go : forall u v, (u < k)%nat -> (v < k)%nat ->
    (0 <= get (fst (snd p)) u v)%Z /\ (0 <= get (snd (snd p)) u v)%Z /\
    0 <= power k P 0 (Pos.to_nat n) u v /\
    value o (get (snd (snd p)) u v) * value o (get (snd (snd p)) u v)
      <= power k P 0 (Pos.to_nat n) u v /\
    power k P 0 (Pos.to_nat n) u v
      <= value o (get (fst (snd p)) u v) * value o (get (fst (snd p)) u v)).
  { intros u v Hu Hv. specialize (O u Hu). rewrite every_spec in O. specialize (O v Hv). ands.
    destruct (powers_below n) as [_ Lo]. destruct (powers_above n) as [_ Hi].
    destruct (Lo u v Hu Hv) as [_ L2]. destruct (Hi u v Hu Hv) as [H3 H4].
    apply IZR_le in H0, H1. rewrite !mult_IZR in H0, H1. unfold real, value in L2, H4.
    repeat split; try assumption.
    - apply Rle_trans with (2 := L2). unfold value.
      apply Rmult_le_reg_r with (IZR o * IZR o); [nra|].
      match goal with |- ?l <= ?r =>
        replace l with (IZR (get (snd (snd p)) u v) * IZR (get (snd (snd p)) u v)) by (field; lra);
        replace r with (IZR (get (low (rows_after o k M n)) u v) * IZR o) by (field; lra) end.
      assumption.
    - apply Rle_trans with (1 := H4). unfold value.
      apply Rmult_le_reg_r with (IZR o * IZR o); [nra|].
      match goal with |- ?l <= ?r =>
        replace r with (IZR (get (fst (snd p)) u v) * IZR (get (fst (snd p)) u v)) by (field; lra);
        replace l with (IZR (get (high (rows_after o k M n)) u v) * IZR o) by (field; lra) end.
      assumption. }
  intros x z Hx Hz. destruct turned; simpl; now apply Go.
Qed.

Variable far : Z.
Variable p : positive.
Let d := pred (Pos.to_nat p).
Hypothesis far_above : C ^ d <= value o far.

Lemma backward_mixes n may mx E : mixed_of l true may p = Some mx ->
  (forall z, (z < k)%nat -> 0 < before k q P n z -> may z = true) ->
  bounds k C (backward k q P) (before k q P) n (real o E) ->
  mixes_at o k C (backward k q P) (before k q P) (Pos.to_nat p + n) E far mx.
Proof.
  intros Mx May B g Lg. right. destruct (mixed_weights _ _ _ _ Mx) as [Em W].
  assert (Kn : forall n x z, (x < k)%nat -> (z < k)%nat -> 0 <= backward k q P n x z)
    by (intros; now apply backward_nonneg; try apply Ch).
  assert (Bn : forall n x, (x < k)%nat -> 0 <= before k q P n x)
    by (intros; apply before_nonneg; auto; apply Ch).
  destruct (block k C C1 _ Kn (before k q P) d n (real o E) g B Lg) as (F & Gr & Bl).
  assert (Ep : Pos.to_nat p = S d) by (unfold d; lia). rewrite Ep in *.
  exists F, (before k q P n), (fun x z => power k P 0 (S d) z x).
  split; [exact Gr|]. split; [auto|]. split; [rewrite Em; assumption|]. split; [exact W|].
  intros x Hx Mass. pose proof (backward_through k P q Ch n (S d) x F Hx) as T.
  rewrite (power_same k P (S d) P_same n) in T.
  assert (T' : before k q P (S d + n) x * through k (backward k q P) (S d) n x F
    = sum k (fun z => before k q P n z * (power k P 0 (S d) z x * F z)))
    by (rewrite T; apply sum_ext; intros; ring).
  destruct (Bl x Hx) as [B1 B2]. rewrite <- T'. split; [|split].
  - rewrite Nat.add_comm, (before_power k q P n (S d) x Hx).
    now rewrite (power_same k P (S d) P_same n).
  - apply Rmult_le_compat_l; lra.
  - apply Rle_trans with (before k q P (S d + n) x
      * (C ^ d * beyond k (backward k q P) (S d + n) x g)); [apply Rmult_le_compat_l; lra|].
    rewrite <- Rmult_assoc, (Rmult_comm (before _ _ _ _ _)), Rmult_assoc.
    apply Rmult_le_compat_r; [|assumption]. apply Rmult_le_pos; [lra|].
    apply beyond_nonneg; auto. intro; apply Lg.
Qed.

Lemma forward_mixes T n mx E : mixed_of l false (fun _ => true) p = Some mx ->
  (Pos.to_nat p + n <= T - 1)%nat ->
  bounds k C (forward k P T) (after k P T) n (real o E) ->
  mixes_at o k C (forward k P T) (after k P T) (Pos.to_nat p + n) E far mx.
Proof.
  intros Mx Hn B g Lg. right. destruct (mixed_weights _ _ _ _ Mx) as [Em W].
  assert (Kn : forall n x z, (x < k)%nat -> (z < k)%nat -> 0 <= forward k P T n x z)
    by (intros; now apply forward_nonneg; try apply Ch).
  destruct (block k C C1 _ Kn (after k P T) d n (real o E) g B Lg) as (F & Gr & Bl).
  assert (Ep : Pos.to_nat p = S d) by (unfold d; lia). rewrite Ep in *.
  exists F, (fun _ => 1), (fun x z => power k P 0 (S d) x z).
  split; [split; [apply Gr|]|].
  { intros z y Hz Hy _ _. apply Gr; auto; unfold P; rewrite (after_1 m ok) by assumption; lra. }
  split; [intros; lra|]. split; [rewrite Em; auto|]. split; [exact W|].
  intros x Hx _. assert (A1 : after k P T (S d + n) x = 1) by (now apply (after_1 m ok)).
  rewrite A1. clear A1.
  assert (Th : through k (forward k P T) (S d) n x F
    = sum k (fun z => 1 * (power k P 0 (S d) x z * F z))).
  { rewrite (forward_through k P T n (S d) (T - 1 - n - S d)) by
      (auto; try lia; intros; now apply (forward_P m ok)).
    rewrite (power_same k P (S d) P_same). apply sum_ext; intros; ring. }
  destruct (Bl x Hx) as [B1 B2]. rewrite <- Th, !Rmult_1_l. split; [|split].
  - transitivity (sum k (power k P 0 (S d) x)); [symmetry; now apply (power_sum k q P Ch)|].
    apply sum_ext; intros; ring.
  - assumption.
  - apply Rle_trans with (1 := B2). apply Rmult_le_compat_r; [|assumption].
    apply beyond_nonneg; auto. intro; apply Lg.
Qed.
End mixed.

Lemma count_mixes K mass n far mx E :
  (forall n x z, (x < k)%nat -> (z < k)%nat -> 0 <= K n x z) ->
  (forall x, (x < k)%nat -> 0 < mass n x -> sums_to_1 k K n x) -> C ^ n <= value o far ->
  mixes_at o k C K mass n E far mx.
Proof.
  intros Kn Sums Far g Lg. left. intros x y Hx Hy Mx My.
  apply Rle_trans with (1 := Sides.count k C C1 K Kn n x y g Hx Hy (Sums x Hx Mx) (Sums y Hy My)
    Lg).
  apply Rmult_le_compat_r; [|assumption]. apply beyond_nonneg; auto. intro; apply Lg.
Qed.

(* -- the values of nodes ---------------------------------------------------------------------- *)

Lemma set_at_S s l n x : set_at (s :: l) (S n) x = set_at (match l with [] => [s] | _ => l end) n x.
Proof. destruct l; [now destruct n as [|[|n]]|reflexivity]. Qed.

Lemma sets_sound pi sets : sets_ok m pi sets = true ->
  (forall x, (x < k)%nat -> 0 < q x -> match initial m with
    | Stationary => (0 < weight pi x)%Z | Given p => 0 < Q2R (nth x p 0%Q) | Any => True end) ->
  forall n x, (x < k)%nat -> 0 < before k q P n x -> set_at sets n x = true.
Proof.
  intros H Start. unfold sets_ok in H. apply andb_prop in H as [H0 H]. rewrite every_spec in H0.
  assert (S0 : forall x, (x < k)%nat -> 0 < q x -> set_at sets 0 x = true).
  { intros x Hx Qx. specialize (Start x Hx Qx). specialize (H0 x Hx).
    destruct (initial m); apply orb_prop in H0 as [H0|H0]; auto; try discriminate.
    - apply Z.leb_le in H0. lia.
    - apply Z.leb_le in H0. exfalso. apply IZR_le in H0. rewrite Q2R_frac in Start.
      assert (Pd : 0 < / IZR (Zpos (Qden (nth x first 0%Q))))
        by (apply Rinv_0_lt_compat; now apply IZR_lt).
      unfold Rdiv in Start. nra. }
  assert (Go : forall l, follow m l = true -> forall n x y, (x < k)%nat -> (y < k)%nat ->
    set_at l n x = true -> 0 < P n x y -> set_at l (S n) y = true).
  { induction l as [|s l IH]; intros F; [discriminate|]. simpl in F.
    apply andb_prop in F as [F1 F2]. rewrite every_spec in F1.
    assert (One : forall n x y, (x < k)%nat -> (y < k)%nat -> nth x s false = true -> 0 < P n x y ->
      nth y (hd s l) false = true).
    { intros n x y Hx Hy Sx Pp. specialize (F1 x Hx). rewrite Sx in F1. simpl in F1.
      rewrite every_spec in F1. specialize (F1 y Hy). apply orb_prop in F1 as [F1|F1]; auto.
      apply Z.leb_le, IZR_le in F1. exfalso. rewrite P_is, Q2R_frac in Pp. fold M in F1.
      assert (Pd : 0 < / IZR (Zpos (Qden (at_xy M x y))))
        by (apply Rinv_0_lt_compat; now apply IZR_lt).
      unfold Rdiv in Pp. nra. }
    destruct l as [|s' l].
    - intros n x y Hx Hy Sx Pp. unfold set_at in *.
      destruct n as [|n]; simpl in *; apply (One _ x y Hx Hy) in Pp; auto; now destruct n.
    - intros [|n] x y Hx Hy Sx Pp.
      + exact (One _ x y Hx Hy Sx Pp).
      + rewrite set_at_S in *. apply (IH F2 n x y); auto.
        now rewrite (P_same n), <- (P_same (S n)). }
  induction n as [|n IH]; intros x Hx B; [now apply S0|]. simpl in B.
  assert (Ex : exists z, (z < k)%nat /\ 0 < before k q P n z /\ 0 < P n z x).
  { apply NNPP. intros No. apply (Rlt_irrefl 0). apply Rlt_le_trans with (1 := B).
    rewrite <- (sum_zero k). apply sum_le; intros z Hz.
    assert (N1 : 0 <= before k q P n z) by (apply before_nonneg; auto; apply Ch).
    assert (N2 : 0 <= P n z x) by (now apply Ch).
    destruct N1 as [N1|<-]; [|lra]. destruct N2 as [N2|<-]; [|lra]. exfalso. apply No. eauto. }
  destruct Ex as (z & Hz & Bz & Pz). apply (Go _ H n z x); auto.
Qed.

(* -- the distributions of the first nodes ----------------------------------------------------- *)

Lemma nodes_bounds r Q : forall N lo hi t,
  under_table o k r lo (fun i => before k (Q i) P t) ->
  over_table o k r hi (fun i => before k (Q i) P t) ->
  forall n, (n < N)%nat ->
  under_table o k r (fst (node_at (nodes o k (forward_rows o M) lo hi N) n))
    (fun i => before k (Q i) P (t + n)) /\
  over_table o k r (snd (node_at (nodes o k (forward_rows o M) lo hi N) n))
    (fun i => before k (Q i) P (t + n)).
Proof.
  assert (Step : forall i t z, before k (Q i) P (S t) z
    = sum k (fun y => before k (Q i) P t y * power k P 0 1 y z)).
  { intros i t z. simpl before. apply sum_ext; intros y Hy.
    now rewrite (power_1 k P y z Hy), (P_same t). }
  induction N as [|N IH]; intros lo hi t Lo Hi n Hn; [lia|]. unfold node_at.
  destruct n as [|n]; [rewrite Nat.add_0_r; now split|]. simpl nodes. simpl nth.
  rewrite Nat.add_succ_r. apply (IH _ _ (S t)); [| |lia].
  - apply under_ext with (2 := product_under o one_pos k r _ _ _ _ Lo (powers_below 1)).
    intros i z _ _. now rewrite Step.
  - apply over_ext with (2 := product_over o one_pos k r _ _ _ _ Hi (powers_above 1)).
    intros i z _ _. now rewrite Step.
Qed.

(* The start is a mixture of rows. *)
Lemma first_bounds : initial m <> Stationary ->
  (forall p, initial m = Given p -> forall x, (x < k)%nat -> q x = Q2R (nth x p 0%Q)) ->
  exists r v Q, (forall i, (i < r)%nat -> 0 <= v i) /\
  (forall x, (x < k)%nat -> q x = sum r (fun i => v i * Q i x)) /\
  under_table o k r (fst (first_rows o m)) Q /\ over_table o k r (snd (first_rows o m)) Q /\
  match initial m with Given _ => r = 1%nat /\ v = (fun _ => 1) /\ Q = (fun _ => q) | _ => True end.
Proof.
  intros NS Given. assert (Po : 0 < IZR o) by (now apply IZR_lt). unfold first_rows.
  destruct (initial m) as [|p|] eqn:St; [easy| |].
  - exists 1%nat, (fun _ => 1), (fun _ => q).
    assert (E : forall x, (x < k)%nat -> q x = Q2R (at_xy [p] 0 x)) by (now apply Given).
    assert (N : forall x, (x < k)%nat -> (0 <= Qnum (at_xy [p] 0 x))%Z).
    { intros x Hx. pose proof (proj1 Ch x Hx) as Q0. rewrite E, Q2R_frac in Q0 by assumption.
      apply le_IZR. assert (Pd : 0 < IZR (Zpos (Qden (at_xy [p] 0 x)))) by (now apply IZR_lt).
      apply Rmult_le_reg_r with (/ IZR (Zpos (Qden (at_xy [p] 0 x))));
        [now apply Rinv_0_lt_compat|]. unfold Rdiv in Q0. lra. }
    split; [intros; lra|]. split; [intros; simpl; ring|]. split; [|split; [|auto]].
    + split; [reflexivity|]. intros i z Hi Hz. replace i with 0%nat by lia. unfold real. simpl.
      change [map (fun p0 => down (o * Qnum p0) (Zpos (Qden p0))) p]
        with (map (map (fun p0 => down (o * Qnum p0) (Zpos (Qden p0)))) [p]).
      rewrite nth_table_map by (simpl; now rewrite Z.mul_0_r).
      split; [apply down_nonneg; [specialize (N z Hz); nia|reflexivity]|].
      rewrite E by assumption. now apply Q2R_down.
    + split; [reflexivity|]. intros i z Hi Hz. replace i with 0%nat by lia. unfold real. simpl.
      change [map (fun p0 => up (o * Qnum p0) (Zpos (Qden p0))) p]
        with (map (map (fun p0 => up (o * Qnum p0) (Zpos (Qden p0)))) [p]).
      rewrite nth_table_map by (simpl; now rewrite Z.mul_0_r).
      split; [now apply Ch|]. rewrite E by assumption. now apply Q2R_up.
  - exists k, q, (fun i x => if (i =? x)%nat then 1 else 0).
    assert (V : forall b : bool, value o (if b then o else 0%Z) = if b then 1 else 0).
    { intros []; unfold value; field; lra. }
    split; [apply Ch|]. split; [|split; [|split; [|exact I]]].
    + intros x Hx. rewrite (sum_ext k _ (fun i => (if (x =? i)%nat then 1 else 0) * q i))
        by (intros; rewrite Nat.eqb_sym; ring). now rewrite sum_one.
    + split; [simpl; now rewrite map_length, seq_length|]. intros x z Hx Hz. unfold real. simpl.
      rewrite get_seq, V by assumption. destruct (x =? z)%nat; split; lra || lia.
    + split; [simpl; now rewrite map_length, seq_length|]. intros x z Hx Hz. unfold real. simpl.
      rewrite get_seq, V by assumption. destruct (x =? z)%nat; lra.
Qed.

Lemma before_mixture r v Q : (forall x, (x < k)%nat -> q x = sum r (fun i => v i * Q i x)) ->
  forall n x, (x < k)%nat -> before k q P n x = sum r (fun i => v i * before k (Q i) P n x).
Proof.
  intros E. induction n as [|n IH]; intros x Hx; [now apply E|]. simpl.
  rewrite (sum_ext k _ (fun z => sum r (fun i => v i * (before k (Q i) P n z * P n z x)))).
  - rewrite sum_swap. apply sum_ext; intros i _. now rewrite sum_scale.
  - intros z Hz. rewrite IH, Rmult_comm, <- sum_scale by assumption. apply sum_ext; intros; ring.
Qed.

(* -- Lemma 7 ---------------------------------------------------------------------------------- *)

Section near.
Variable pis : list (list Z).
Hypothesis pis_ok : stationary_ok m pis = true.
Let pi x := IZR (weight (weights pis 0) x).

Lemma pi_nonneg x : 0 <= pi x.
Proof. pose proof (w_nonneg m ok phase pis pis_ok 0 x) as W.
  now rewrite one_matrix, Nat.mod_1_r in W. Qed.

Lemma pi_next x : (x < k)%nat -> pi x = sum k (fun z => pi z * P 0%nat z x).
Proof.
  intros Hx. pose proof (w_evolves m ok phase pis pis_ok 0 x Hx) as W.
  now rewrite one_matrix, !Nat.mod_1_r in W.
Qed.

(* m(x) / m(y) <= D pi(x) / pi(y) at a node, and so at all later ones. *)
Definition spread (D : R) (n : nat) := forall x y, (x < k)%nat -> (y < k)%nat ->
  before k q P n x * pi y <= D * (before k q P n y * pi x).

Lemma spread_next D n : spread D n -> spread D (S n).
Proof.
  intros H x y Hx Hy. rewrite (pi_next x Hx), (pi_next y Hy). simpl. rewrite P_same.
  rewrite !sum_product, (sum_swap k k (fun y0 z => before k q P n y0 * P 0%nat y0 y
    * (pi z * P 0%nat z x))), <- sum_scale.
  apply sum_le; intros z Hz. rewrite <- sum_scale. apply sum_le; intros w Hw.
  specialize (H z w Hz Hw). assert (N1 : 0 <= P 0%nat z x) by (now apply Ch).
  assert (N2 : 0 <= P 0%nat w y) by (now apply Ch).
  assert (N : 0 <= P 0%nat z x * P 0%nat w y) by (now apply Rmult_le_pos).
  apply (Rmult_le_compat_r _ _ _ N) in H. lra.
Qed.

Lemma spread_later D n j : spread D n -> spread D (n + j).
Proof.
  intros H. induction j as [|j IH]; [now rewrite Nat.add_0_r|]. rewrite Nat.add_succ_r.
  now apply spread_next.
Qed.

Lemma spread_sound r v Q D node n : (0 <= D)%Z -> (forall i, (i < r)%nat -> 0 <= v i) ->
  (forall x, (x < k)%nat -> before k q P n x = sum r (fun i => v i * before k (Q i) P n x)) ->
  under_table o k r (fst node) (fun i => before k (Q i) P n) ->
  over_table o k r (snd node) (fun i => before k (Q i) P n) ->
  spread_ok o k (weights pis 0) D node = true -> spread (value o D) n.
Proof.
  intros D0 V E [Len Lo] [_ Hi] H x y Hx Hy. unfold spread_ok in H. rewrite Len, every_spec in H.
  rewrite !E by assumption. rewrite Rmult_comm, <- sum_scale, (Rmult_comm (sum _ _) (pi x)).
  rewrite <- sum_scale, <- sum_scale. apply sum_le; intros i Hi'.
  specialize (H i Hi'). rewrite every_spec in H. specialize (H x Hx). rewrite every_spec in H.
  specialize (H y Hy). apply Z.leb_le, IZR_le in H. rewrite !mult_IZR in H.
  destruct (Hi i x Hi' Hx) as [_ Hx']. destruct (Lo i y Hi' Hy) as [_ Ly]. specialize (V i Hi').
  pose proof (pi_nonneg x) as Px. pose proof (pi_nonneg y) as Py.
  assert (Po : 0 < IZR o) by (now apply IZR_lt). apply IZR_le in D0.
  assert (A : before k (Q i) P n x * pi y <= value o D * (before k (Q i) P n y * pi x)).
  { apply Rle_trans with (real o (snd node) i x * pi y); [now apply Rmult_le_compat_r|].
    apply Rle_trans with (value o D * (real o (fst node) i y * pi x)).
    - unfold real, value, pi. apply Rmult_le_reg_r with (IZR o * IZR o); [nra|].
      match goal with |- ?l <= ?r =>
        replace l with (IZR (get (snd node) i x) * IZR (weight (weights pis 0) y) * IZR o)
          by (field; lra);
        replace r with (IZR D * (IZR (get (fst node) i y) * IZR (weight (weights pis 0) x)))
          by (field; lra) end. exact H.
    - apply Rmult_le_compat_l.
      + unfold value. apply Rmult_le_pos; [assumption|]. left. now apply Rinv_0_lt_compat.
      + now apply Rmult_le_compat_r. }
  apply (Rmult_le_compat_l _ _ _ V) in A. lra.
Qed.

Lemma spread_positive D n y : 0 <= D -> spread D n -> (y < k)%nat -> 0 < pi y ->
  0 < before k q P n y.
Proof.
  intros D0 H Hy Py. destruct (before_nonneg k q P (proj1 Ch) (proj1 (proj2 (proj2 Ch))) n y Hy)
    as [|Z]; [assumption|exfalso].
  assert (S1 : sum k (before k q P n) = 1) by (now apply (before_mass m ok)).
  assert (sum k (before k q P n) <= sum k (fun _ => 0)); [|rewrite sum_zero in *; lra].
  apply sum_le; intros x Hx. specialize (H x y Hx Hy). rewrite <- Z in H. nra.
Qed.

Section step.
Variable n : nat.
Variables D D' : R.
Hypothesis D1 : 1 <= D.
Hypothesis D'1 : 1 <= D'.
Hypothesis near_n : spread D n.
Hypothesis near_S : spread D' (S n).
Variable h : nat -> R.
Hypothesis h_nonneg : forall z, (z < k)%nat -> 0 <= h z.

Let b := before k q P.
Let p x z := pi z * P 0%nat z x / pi x.
Let X x := sum k (fun z => backward k q P n x z * h z).
Let U x := sum k (fun z => p x z * h z).

Let b_nonneg i x : (x < k)%nat -> 0 <= b i x.
Proof. intros Hx. apply before_nonneg; auto; apply Ch. Qed.

Let P0 x z : (x < k)%nat -> (z < k)%nat -> 0 <= P 0%nat x z.
Proof. intros; now apply Ch. Qed.

Lemma X_times x : (x < k)%nat -> 0 < b (S n) x ->
  b (S n) x * X x = sum k (fun z => b n z * P 0%nat z x * h z).
Proof.
  intros Hx Bx. unfold X. rewrite <- sum_scale. apply sum_ext; intros z Hz. unfold backward.
  fold b. rewrite P_same. field. lra.
Qed.

Lemma U_times x : (x < k)%nat -> 0 < pi x -> pi x * U x = sum k (fun z => pi z * P 0%nat z x * h z).
Proof.
  intros Hx Px. unfold U. rewrite <- sum_scale. apply sum_ext; intros z Hz. unfold p. field. lra.
Qed.

Lemma p_nonneg x z : (x < k)%nat -> (z < k)%nat -> 0 < pi x -> 0 <= p x z.
Proof.
  intros Hx Hz Px. apply div_nonneg; [|lra]. apply Rmult_le_pos; [apply pi_nonneg|now apply P0].
Qed.

Lemma X_nonneg x : (x < k)%nat -> 0 <= X x.
Proof.
  intros Hx. apply sum_nonneg; intros z Hz. apply Rmult_le_pos; [|auto].
  now apply backward_nonneg; try apply Ch.
Qed.

Lemma U_nonneg x : (x < k)%nat -> 0 < pi x -> 0 <= U x.
Proof.
  intros Hx Px. apply sum_nonneg; intros z Hz. apply Rmult_le_pos; [now apply p_nonneg|auto].
Qed.

(* The spreads of this node and the next. *)
Lemma near_product x y e : (x < k)%nat -> (y < k)%nat -> 0 < pi x -> 0 < pi y -> 0 <= e ->
  U x <= e * U y -> X x <= D * D' * e * X y.
Proof.
  intros Hx Hy Px Py He Le.
  assert (Bx := spread_positive D' (S n) x ltac:(lra) near_S Hx Px). fold b in Bx.
  assert (By := spread_positive D' (S n) y ltac:(lra) near_S Hy Py). fold b in By.
  assert (Q : X x * U y <= D * D' * (U x * X y)).
  { assert (A : b (S n) x * X x * (pi y * U y) <= D * (b (S n) y * X y * (pi x * U x))).
    { rewrite !X_times, !U_times by assumption.
      rewrite !sum_product, (sum_swap k k (fun y0 z => b n y0 * P 0%nat y0 y * h y0
        * (pi z * P 0%nat z x * h z))), <- sum_scale.
      apply sum_le; intros z Hz. rewrite <- sum_scale. apply sum_le; intros w Hw.
      assert (N := near_n z w Hz Hw). fold b in N.
      assert (W : 0 <= P 0%nat z x * h z * (P 0%nat w y * h w))
        by (apply Rmult_le_pos; apply Rmult_le_pos; auto).
      apply (Rmult_le_compat_r _ _ _ W) in N. lra. }
    assert (S' := near_S y x Hy Hx). fold b in S'.
    assert (XU : 0 <= X y * U x) by (apply Rmult_le_pos; [now apply X_nonneg|now apply U_nonneg]).
    apply (Rmult_le_compat_r (D * (X y * U x))) in S'; [|apply Rmult_le_pos; lra].
    apply Rmult_le_reg_l with (b (S n) x * pi y); [now apply Rmult_lt_0_compat|]. lra. }
  assert (Xy := X_nonneg y Hy). assert (Uy := U_nonneg y Hy Py). assert (Ux := U_nonneg x Hx Px).
  assert (DD : 0 <= D * D') by (apply Rmult_le_pos; lra).
  destruct Uy as [Uy|Z].
  - apply Rmult_le_reg_r with (1 := Uy). apply Rle_trans with (1 := Q).
    assert (W : 0 <= D * D' * X y) by (now apply Rmult_le_pos).
    apply (Rmult_le_compat_l _ _ _ W) in Le. lra.
  - assert (Zx : U x = 0) by (rewrite <- Z in Le; lra).
    assert (X x <= 0).
    { assert (A : pi y * (b (S n) x * X x) <= D * (b n y * (pi x * U x))).
      { rewrite X_times, U_times, <- sum_scale, <- !sum_scale by assumption.
        apply sum_le; intros z Hz. assert (N := near_n z y Hz Hy). fold b in N.
        assert (W : 0 <= P 0%nat z x * h z) by (apply Rmult_le_pos; auto).
        apply (Rmult_le_compat_r _ _ _ W) in N. lra. }
      rewrite Zx, !Rmult_0_r in A. assert (0 < pi y * b (S n) x) by (now apply Rmult_lt_0_compat).
      assert (0 <= X x) by (now apply X_nonneg). nra. }
    apply Rle_trans with 0; [assumption|]. repeat apply Rmult_le_pos; lra.
Qed.

(* The overlap with the stationary distributions, H being the largest growth. *)
Lemma near_overlap x H : (x < k)%nat -> 0 < pi x -> 1 <= H ->
  (forall z y, (z < k)%nat -> (y < k)%nat -> 0 < b n z -> 0 < b n y -> h z <= H * h y) ->
  X x <= (/ D + (1 - / D) * H) * U x /\ U x <= (/ D + (1 - / D) * H) * X x.
Proof.
  intros Hx Px H1 Near.
  assert (Bx := spread_positive D' (S n) x ltac:(lra) near_S Hx Px). fold b in Bx.
  assert (Id : 0 < / D) by (apply Rinv_0_lt_compat; lra).
  assert (Id1 : / D <= 1) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra).
  assert (Kn : forall z, (z < k)%nat -> 0 <= backward k q P n x z)
    by (intros; now apply backward_nonneg; try apply Ch).
  assert (Pn : forall z, (z < k)%nat -> 0 <= p x z) by (intros; now apply p_nonneg).
  assert (Ks : sum k (backward k q P n x) = 1).
  { rewrite (sum_ext k _ (fun z => / b (S n) x * (b n z * P n z x)))
      by (intros; unfold backward; fold b; unfold Rdiv; ring).
    rewrite sum_scale. change (sum k (fun z => b n z * P n z x)) with (b (S n) x). field. lra. }
  assert (Ps : sum k (p x) = 1).
  { rewrite (sum_ext k _ (fun z => / pi x * (pi z * P 0%nat z x)))
      by (intros; unfold p, Rdiv; ring).
    rewrite sum_scale, <- pi_next by assumption. field. lra. }
  assert (Le : forall z, (z < k)%nat -> / D * p x z <= backward k q P n x z).
  { intros z Hz. unfold backward, p. fold b. rewrite (P_same n).
    apply Rmult_le_reg_r with (D * (b (S n) x * pi x));
      [apply Rmult_lt_0_compat; [lra|]; now apply Rmult_lt_0_compat|].
    match goal with |- ?l <= ?r =>
      replace l with (b (S n) x * pi z * P 0%nat z x) by (field; lra);
      replace r with (D * (b n z * pi x) * P 0%nat z x) by (field; lra) end.
    apply Rmult_le_compat_r; [now apply P0|].
    (* the next node's weight of x is a mean of those of this node *)
    rewrite (pi_next x Hx). change (b (S n) x) with (sum k (fun w => b n w * P n w x)).
    apply Rle_trans with (sum k (fun w => pi z * (b n w * P n w x))); [rewrite sum_scale; lra|].
    apply Rle_trans with (sum k (fun w => D * b n z * (pi w * P 0%nat w x)));
      [|rewrite sum_scale; lra].
    apply sum_le; intros w Hw. rewrite (P_same n).
    assert (N := near_n w z Hw Hz). fold b in N. assert (W := P0 w x Hw Hx).
    apply (Rmult_le_compat_r _ _ _ W) in N. lra. }
  assert (Min : forall F G, (forall z, (z < k)%nat -> / D * p x z <= F z /\ / D * p x z <= G z) ->
    / D <= sum k (fun z => Rmin (F z) (G z))).
  { intros F G B. apply Rle_trans with (sum k (fun z => / D * p x z)).
    - rewrite sum_scale, Ps. lra.
    - apply sum_le; intros z Hz. apply Rmin_glb; now apply B. }
  assert (Self : forall z, (z < k)%nat -> / D * p x z <= p x z)
    by (intros z Hz; specialize (Pn z Hz); nra).
  assert (May : forall z, (z < k)%nat -> 0 < backward k q P n x z \/ 0 < p x z -> 0 < b n z).
  { intros z Hz O. destruct (b_nonneg n z Hz) as [|Z]; [assumption|exfalso]. destruct O as [O|O].
    - unfold backward in O. fold b in O. rewrite <- Z in O. unfold Rdiv in O.
      rewrite !Rmult_0_l in O. lra.
    - specialize (Le z Hz). unfold backward in Le. fold b in Le. rewrite <- Z in Le.
      unfold Rdiv in Le. rewrite !Rmult_0_l in Le. nra. }
  assert (Or : forall z, (z < k)%nat -> 0 < backward k q P n x z + p x z -> 0 < b n z).
  { intros z Hz O. apply May; [assumption|]. destruct (Rlt_dec 0 (p x z)); [now right|left; lra]. }
  split; apply overlap_bound; auto.
  intros z y Hz Hy Oz Oy. rewrite Rplus_comm in Oz, Oy. apply Near; auto.
Qed.
End step.

Variable c : Z.
Hypothesis c_above : C <= value o c.
Let B := backward_rows o k M (weights pis 0) (weights pis 0).

Theorem near_enclosed n D D' E : (o <= D)%Z -> (o <= D')%Z -> spread (value o D) n ->
  spread (value o D') (S n) ->
  forallb (forallb (Z.leb 0)) (low B) = true ->
  enclosed o k C (backward k q P) (before k q P) n E (near_rows o k B D D' (growth o c E)).
Proof.
  intros HD HD' Sn Sn' Low. unfold near_rows.
  rewrite (proj2 (Z.leb_le o D) HD), (proj2 (Z.leb_le o D') HD'). cbn [andb].
  assert (Po : 0 < IZR o) by (now apply IZR_lt).
  assert (V1 : forall d, (o <= d)%Z -> 1 <= value o d).
  { intros d Hd. apply (value_le o _ _ one_pos) in Hd. now rewrite one_value in Hd by assumption. }
  assert (D1 := V1 D HD). assert (D'1 := V1 D' HD').
  assert (Pos : forall x, (0 <? weight (weights pis 0) x)%Z = true -> 0 < pi x)
    by (intros x H; now apply IZR_lt, Z.ltb_lt).
  split; [now apply nonneg_table|]. split.
  { intros y Hy Ny. apply (spread_positive (value o D)); auto; lra. }
  assert (Kn : forall n x z, (x < k)%nat -> (z < k)%nat -> 0 <= backward k q P n x z)
    by (intros; now apply backward_nonneg; try apply Ch).
  intros g Bg Lg. destruct (step_growing k C C1 _ Kn (before k q P) n _ g Bg Lg) as [Gp Gr].
  pose (h := fun z => if Rlt_dec 0 (before k q P n z)
    then beyond k (backward k q P) n z (fun r => g (z :: r)) else 0).
  assert (Hn : forall z, (z < k)%nat -> 0 <= h z).
  { intros z Hz. unfold h. destruct (Rlt_dec _ _); [auto|lra]. }
  assert (Gh : growing k (before k q P n) (fun z y => C * real o E z y) h).
  { split; [assumption|]. intros z y Hz Hy Mz My Q. unfold h.
    destruct (Rlt_dec 0 (before k q P n z)); [|lra].
      destruct (Rlt_dec 0 (before k q P n y)); [|lra].
    auto. }
  assert (Eq : forall x, (x < k)%nat -> beyond k (backward k q P) (S n) x g
    = sum k (fun z => backward k q P n x z * h z)).
  { intros x Hx. simpl. apply sum_ext; intros z Hz. unfold h.
    destruct (Rlt_dec 0 (before k q P n z)); [reflexivity|].
    rewrite backward_zero by (auto; apply Ch). ring. }
  exists h, (fun x z => pi z * P 0%nat z x / pi x). split; [assumption|]. split.
  { intros z Hz N. unfold h. now destruct (Rlt_dec 0 (before k q P n z)). }
  split.
  { intros x z Hx Kx _ Hz. simpl in Kx. apply Z.ltb_lt in Kx.
    assert (Px : 0 < IZR (weight (weights pis 0) x)) by (now apply IZR_lt).
    unfold real. simpl. rewrite !get_seq, P_is by assumption. set (p0 := at_xy M z x).
    assert (Pd : 0 < IZR (Zpos (Qden p0))) by (now apply IZR_lt).
    assert (Pz : (0 < Zpos (Qden p0) * weight (weights pis 0) x)%Z) by lia.
    assert (V : pi z * Q2R p0 / pi x = IZR (o * (weight (weights pis 0) z * Qnum p0))
      / IZR (Zpos (Qden p0) * weight (weights pis 0) x) / IZR o).
    { unfold pi. rewrite Q2R_frac, !mult_IZR. field. repeat split; lra. }
    rewrite V. unfold value. split; apply Rmult_le_compat_r;
      try (left; now apply Rinv_0_lt_compat); [now apply down_le|now apply up_ge]. }
  intros x y e Hx Hy Kx Ky _ _ He Le. simpl in Kx, Ky. rewrite !Eq by assumption.
  assert (Px := Pos x Kx). assert (Py := Pos y Ky). cbn [slack].
  assert (Xy : 0 <= sum k (fun z => backward k q P n y z * h z)).
  { apply sum_nonneg; intros z Hz. apply Rmult_le_pos; auto. }
  assert (First : sum k (fun z => backward k q P n x z * h z)
    <= value o (up (D * D') o) * e * sum k (fun z => backward k q P n y z * h z)).
  { apply Rle_trans with (1 := near_product n (value o D) (value o D') D1 D'1 Sn Sn' h Hn x y e Hx
    Hy
      Px Py He Le).
    apply Rmult_le_compat_r; [assumption|]. apply Rmult_le_compat_r; [assumption|].
    unfold value. pose proof (up_ge (D * D') o one_pos) as Q. rewrite mult_IZR in Q.
    apply Rmult_le_reg_r with (1 := Po).
    match goal with |- ?l <= ?r => replace l with (IZR D * IZR D' / IZR o) by (field; lra);
      replace r with (IZR (up (D * D') o)) by (field; lra) end. exact Q. }
  unfold slack_of. destruct (every k _) eqn:All; [|exact First].
  set (H := fold_right Z.max o (concat (growth o c E))).
  set (t := up (o * o + (D - o) * H) D).
  apply Z.min_case; [exact First|].
  assert (Hge : forall l v, In v l -> (v <= fold_right Z.max o l)%Z).
  { induction l as [|a l IH]; intros v I; [contradiction|]. destruct I as [->|I]; simpl; [lia|].
    specialize (IH v I). lia. }
  assert (H1 : (o <= H)%Z).
  { unfold H. generalize (concat (growth o c E)). induction l as [|a l IH]; simpl; lia. }
  assert (Hv := V1 H H1).
  assert (Near : forall z y, (z < k)%nat -> (y < k)%nat -> 0 < before k q P n z ->
    0 < before k q P n y -> h z <= value o H * h y).
  { intros z v Hz Hv' Mz Mv. rewrite every_spec in All. specialize (All z Hz).
    rewrite every_spec in All. specialize (All v Hv'). apply Z.ltb_lt in All.
    assert (G := proj2 (growth_growing o one_pos k C C1 c c_above _ E h Gh) z v Hz Hv' Mz Mv
      (proj2 (real_pos o one_pos _ z v) All)).
    apply Rle_trans with (1 := G). apply Rmult_le_compat_r; [auto|]. apply value_le; [assumption|].
    apply Hge. now apply get_in. }
  destruct (near_overlap n (value o D) (value o D') D1 D'1 Sn Sn' h Hn x (value o H) Hx Px Hv Near)
    as [Ax _].
  destruct (near_overlap n (value o D) (value o D') D1 D'1 Sn Sn' h Hn y (value o H) Hy Py Hv Near)
    as [_ Ay].
  set (tr := / value o D + (1 - / value o D) * value o H) in *.
  assert (Id : 0 < / value o D) by (apply Rinv_0_lt_compat; lra).
  assert (Id1 : / value o D <= 1) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra).
  assert (T1 : 0 <= tr) by (unfold tr; nra).
  assert (Tt : tr <= value o t).
  { assert (Pd : 0 < IZR D) by (apply IZR_lt; lia).
    pose proof (up_ge (o * o + (D - o) * H) D ltac:(lia)) as Q.
    rewrite plus_IZR, !mult_IZR, minus_IZR in Q. fold t in Q. unfold tr, value.
    apply Rmult_le_reg_r with (1 := Po).
    match goal with |- ?l <= ?r => replace l with
      ((IZR o * IZR o + (IZR D - IZR o) * IZR H) / IZR D) by (field; lra);
      replace r with (IZR t) by (field; lra) end. exact Q. }
  assert (Tq : tr * tr <= value o (up (t * t) o)).
  { apply Rle_trans with (value o t * value o t); [apply Rmult_le_compat; assumption|].
    pose proof (up_ge (t * t) o one_pos) as Q. rewrite mult_IZR in Q. unfold value.
    apply Rmult_le_reg_r with (1 := Po).
    match goal with |- ?l <= ?r => replace l with (IZR t * IZR t / IZR o) by (field; lra);
      replace r with (IZR (up (t * t) o)) by (field; lra) end. exact Q. }
  apply Rle_trans with (tr * tr * e * sum k (fun z => backward k q P n y z * h z)).
  - apply Rle_trans with (1 := Ax).
    apply Rle_trans with (tr * (e * (tr * sum k (fun z => backward k q P n y z * h z)))).
    + apply Rmult_le_compat_l; [assumption|]. apply Rle_trans with (1 := Le).
      now apply Rmult_le_compat_l.
    + right; ring.
  - apply Rmult_le_compat_r; [assumption|]. now apply Rmult_le_compat_r.
Qed.
End near.

(* -- a given start ---------------------------------------------------------------------------- *)

Theorem given_enclosed l n E :
  (forall j, (j <= S n)%nat -> (j < length l)%nat ->
   under_table o k 1 (fst (node_at l j)) (fun _ => before k q P j) /\
   over_table o k 1 (snd (node_at l j)) (fun _ => before k q P j)) ->
  enclosed o k C (backward k q P) (before k q P) n E (given_rows o k M l n).
Proof.
  intros Nodes. assert (Po : 0 < IZR o) by (now apply IZR_lt).
  assert (Div : forall u v, (0 <= u)%Z -> (0 <= v)%Z -> (0 <= down u v)%Z).
  { intros u v Hu [Hv| <-]%Zle_lt_or_eq; [now apply Z.div_pos|]. unfold down.
    now rewrite Zdiv_0_r. }
  assert (Out : forall j x, (length l <= j)%nat -> get (fst (node_at l j)) 0 x = 0%Z).
  { intros j x Hj. unfold node_at. rewrite nth_overflow by assumption. unfold get. now destruct x. }
  assert (In0 : forall j x, (0 < get (fst (node_at l j)) 0 x)%Z -> (j < length l)%nat).
  { intros j x Hp. destruct (Nat.lt_ge_cases j (length l)); [assumption|].
    rewrite Out in Hp by assumption. lia. }
  assert (Lo : forall j x, (j <= S n)%nat -> (x < k)%nat ->
    value o (get (fst (node_at l j)) 0 x) <= before k q P j x).
  { intros j x Hj Hx. destruct (Nat.lt_ge_cases j (length l)) as [Lt|Ge].
    - destruct (Nodes j Hj Lt) as [[_ L] _]. now destruct (L 0%nat x ltac:(lia) Hx).
    - rewrite Out by assumption. unfold value, Rdiv. rewrite Rmult_0_l.
      apply before_nonneg; auto; apply Ch. }
  assert (Hi0 : forall j x, (j <= S n)%nat -> (x < k)%nat -> (0 <= get (snd (node_at l j)) 0 x)%Z).
  { intros j x Hj Hx. destruct (Nat.lt_ge_cases j (length l)) as [Lt|Ge].
    - destruct (Nodes j Hj Lt) as [_ [_ H]]. destruct (H 0%nat x ltac:(lia) Hx) as [H0 H1].
      apply le_IZR. unfold real, value in H1. apply Rmult_le_reg_r with (/ IZR o);
        [now apply Rinv_0_lt_compat|]. unfold Rdiv in H1. lra.
    - unfold node_at. rewrite nth_overflow by assumption. unfold get. now destruct x. }
  assert (Lo0 : forall j x, (j <= S n)%nat -> (x < k)%nat -> (0 <= get (fst (node_at l j)) 0 x)%Z).
  { intros j x Hj Hx. destruct (Nat.lt_ge_cases j (length l)) as [Lt|Ge]; [|rewrite Out; lia].
    destruct (Nodes j Hj Lt) as [[_ L] _]. now destruct (L 0%nat x ltac:(lia) Hx). }
  split; [|split].
  - unfold given_rows. cbn [low]. apply Forall_forall. intros row Hr. apply in_map_iff in Hr.
    destruct Hr as (x & <- & Hx). cbv beta. apply in_seq in Hx. apply Forall_forall. intros v Hv.
    apply in_map_iff in Hv. destruct Hv as (z & <- & Hz). apply in_seq in Hz.
    apply Div; apply Z.mul_nonneg_nonneg; try lia.
    + apply Z.mul_nonneg_nonneg; [apply Lo0; lia|apply entries_nonneg; lia].
    + apply Hi0; lia.
  - intros y Hy Ny. simpl in Ny. apply Z.ltb_lt in Ny.
    apply Rlt_le_trans with (2 := Lo n y ltac:(lia) Hy). now apply value_pos.
  - apply seen_exact; auto.
    + intros; now apply backward_nonneg; try apply Ch.
    + intros x z Hx Hz N. now apply backward_zero; try apply Ch.
    + intros x z Hx Kn _ Hz. simpl in Kn. apply Z.ltb_lt in Kn.
      assert (Lt := In0 (S n) x Kn). destruct (Nodes (S n) (le_n _) Lt) as [[_ L'] [_ H']].
      destruct (Nodes n ltac:(lia) ltac:(lia)) as [[_ L] [_ H]].
      destruct (L 0%nat z ltac:(lia) Hz) as [L0 L1]. destruct (H 0%nat z ltac:(lia) Hz) as [H0 H1].
      destruct (L' 0%nat x ltac:(lia) Hx) as [_ L2]. destruct (H' 0%nat x ltac:(lia) Hx) as [_ H2].
      unfold backward. rewrite P_is. unfold real, given_rows. cbn [low high].
      rewrite !get_seq by assumption. set (p0 := at_xy M z x).
      assert (Np : (0 <= Qnum p0)%Z) by (now apply entries_nonneg).
      assert (Pd : 0 < IZR (Zpos (Qden p0))) by (now apply IZR_lt).
      unfold real in *. set (lo := get (fst (node_at l n)) 0 z) in *.
      set (hi := get (snd (node_at l n)) 0 z) in *.
      set (lo' := get (fst (node_at l (S n))) 0 x) in *.
      set (hi' := get (snd (node_at l (S n))) 0 x) in *.
      assert (Pl : 0 < IZR lo') by (now apply IZR_lt).
      set (b := before k q P n z) in *. set (b' := before k q P (S n) x) in *.
      assert (Pb' : 0 < b') by (apply Rlt_le_trans with (2 := L2); now apply value_pos).
      assert (Ph : 0 < IZR hi').
      { unfold value in H2. apply Rmult_lt_reg_r with (/ IZR o); [now apply Rinv_0_lt_compat|].
        unfold Rdiv in H2. lra. }
      assert (Q0 : 0 <= Q2R p0) by (now apply Q2R_nonneg).
      assert (V : forall u v, 0 < IZR v -> value o u * Q2R p0 / value o v
        = IZR (o * (u * Qnum p0)) / IZR (Zpos (Qden p0) * v) / IZR o).
      { intros u v Pv. unfold value. rewrite Q2R_frac, !mult_IZR. field. repeat split; lra. }
      assert (Vl : 0 < value o lo') by (now apply value_pos).
      assert (Vh : 0 < value o hi') by (apply value_pos; [assumption|now apply lt_IZR]).
      assert (Io : 0 <= / IZR o) by (left; now apply Rinv_0_lt_compat).
      assert (D1 : (0 < Zpos (Qden p0) * lo')%Z) by (apply lt_IZR in Pl; lia).
      assert (D2 : (0 < Zpos (Qden p0) * hi')%Z) by (apply lt_IZR in Ph; lia).
      unfold value at 1 2. split.
      * apply Rle_trans with (value o lo * Q2R p0 / value o hi').
        -- rewrite V by assumption. apply Rmult_le_compat_r; [assumption|]. now apply down_le.
        -- unfold Rdiv. apply Rmult_le_compat.
           ++ apply Rmult_le_pos; [apply Rmult_le_pos; [now apply IZR_le|assumption]|assumption].
           ++ left. now apply Rinv_0_lt_compat.
           ++ now apply Rmult_le_compat_r.
           ++ now apply Rinv_le_contravar.
      * apply Rle_trans with (value o hi * Q2R p0 / value o lo').
        -- unfold Rdiv. apply Rmult_le_compat.
           ++ apply Rmult_le_pos; assumption.
           ++ left. now apply Rinv_0_lt_compat.
           ++ now apply Rmult_le_compat_r.
           ++ now apply Rinv_le_contravar.
        -- rewrite V by assumption. apply Rmult_le_compat_r; [assumption|]. now apply up_ge.
Qed.
End model.
