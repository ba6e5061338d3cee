(* What the checker accepts is true. *)
From Coq Require Import Reals Lra Lia List Arith ZArith QArith Qreals Bool.
From Pufferflow Require Import Sums Chains Sides Reversal Segments Blocks Numbers Claims Checker
  Steps Models Overlap Quilts Starts.
Import ListNotations.
Open Scope R_scope.

(* -- READ ------------------------------------------------------------------------------------- *)

Lemma fold_max l : forall x, In x l -> (x <= fold_right Z.max 0 l)%Z.
Proof.
  induction l as [|a l IH]; intros x H; [contradiction|]. destruct H as [->|H]; simpl; [lia|].
  specialize (IH x H). lia.
Qed.

Section read.
Variable one : Z.
Hypothesis one_pos : (0 < one)%Z.
Variables k : nat.
Variables L cw : Z.
Variables e : R.
Hypothesis L_below : value one L <= e.

Lemma product_le a b l : (cw * a * b <= L * one * one)%Z -> l <= value one cw -> 0 <= l ->
  (0 < a)%Z -> (0 < b)%Z -> l * value one a * value one b <= e.
Proof.
  intros H Hl Pl Ha Hb. apply Rle_trans with (2 := L_below).
  assert (Po : 0 < IZR one) by (now apply IZR_lt).
  apply IZR_le in H. rewrite !mult_IZR in H. unfold value in *.
  apply IZR_lt in Ha, Hb.
  assert (P3 : 0 < IZR one * IZR one * IZR one) by (repeat apply Rmult_lt_0_compat; assumption).
  apply Rmult_le_reg_r with (1 := P3).
  apply Rle_trans with (IZR cw / IZR one * (IZR a / IZR one) * (IZR b / IZR one)
    * (IZR one * IZR one * IZR one)).
  - apply Rmult_le_compat_r; [lra|].
    apply Rmult_le_compat_r; [left; apply Rdiv_lt_0_compat; lra|].
    apply Rmult_le_compat_r; [left; apply Rdiv_lt_0_compat; lra|]. assumption.
  - replace (IZR cw / IZR one * (IZR a / IZR one) * (IZR b / IZR one)
      * (IZR one * IZR one * IZR one)) with (IZR cw * IZR a * IZR b) by (field; lra).
    replace (IZR L / IZR one * (IZR one * IZR one * IZR one)) with (IZR L * IZR one * IZR one)
      by (field; lra). assumption.
Qed.

Lemma read_sound w l first last A B x z x' z' :
  read_ok one k L w cw first last A B = true -> l <= value one cw -> 0 <= l ->
  (x < k)%nat -> (z < k)%nat -> (x' < k)%nat -> (z' < k)%nat ->
  first x = true -> last z = true -> first x' = true -> last z' = true ->
  (w = 1%Z -> x = z /\ x' = z' /\ x <> x') ->
  0 < real one A z z' /\ 0 < real one B x x' /\ l * real one A z z' * real one B x x' <= e.
Proof.
  intros R Hl Pl Hx Hz Hx' Hz' Px Pz Px' Pz' W1. unfold read_ok in R.
  unfold real. rewrite !value_pos by assumption.
  destruct (Z.eqb_spec w 1) as [->|].
  - destruct (W1 eq_refl) as (<- & <- & Ne). ands. specialize (R x Hx). ands. specialize (R x' Hx').
    rewrite Px, Px' in R. apply Nat.eqb_neq in Ne. rewrite Ne in R. simpl in R. ands.
    repeat split; auto. now apply product_le.
  - apply andb_prop in R as [R M]. apply andb_prop in R as [RA RB]. ands.
    specialize (RA z Hz). ands. specialize (RA z' Hz').
    specialize (RB x Hx). ands. specialize (RB x' Hx').
    rewrite Pz, Pz' in RA. rewrite Px, Px' in RB. simpl in RA, RB. ands.
    repeat split; auto.
    assert (Most : forall (possible : nat -> bool) E x y, (x < k)%nat -> (y < k)%nat ->
      possible x = true -> possible y = true -> (get E x y <= fold_right Z.max 0 (flat_map
        (fun x => map (fun y => if possible x && possible y then get E x y else 0) (seq 0 k))
        (seq 0 k)))%Z).
    { intros possible E u v Hu Hv Pu Pv. apply fold_max, in_flat_map. exists u.
      split; [apply in_seq; lia|]. apply in_map_iff. exists v. rewrite Pu, Pv.
      split; [reflexivity|apply in_seq; lia]. }
    assert (MA := Most last A z z' Hz Hz' Pz Pz'). assert (MB := Most first B x x' Hx Hx' Px Px').
    clear Most. match type of MA with (_ <= ?ma)%Z => match type of MB with (_ <= ?mb)%Z =>
      assert (G : l * value one ma * value one mb <= e) by (apply product_le; auto; lia) end end.
    apply Rle_trans with (2 := G).
    assert (forall y, (0 < y)%Z -> 0 <= value one y) as V.
    { intros y Hy. left. now apply value_pos. }
    apply Rmult_le_compat; [apply Rmult_le_pos; auto|auto| |now apply value_le].
    apply Rmult_le_compat_l; [assumption|now apply value_le].
Qed.

Lemma sets_from_spec sets n i x : (n <= i)%nat -> set_at sets i x = true ->
  sets_from sets n x = true.
Proof.
  unfold sets_from, set_at. intros Hi H. apply orb_true_iff.
  destruct (Nat.lt_ge_cases i (length sets)) as [Lt|Ge].
  - right. apply existsb_exists. exists (nth i sets (List.last sets [])). split; [|assumption].
    replace i with (n + (i - n))%nat by lia.
    rewrite <- (firstn_skipn n sets) at 1. rewrite app_nth2; rewrite firstn_length; [|lia].
    replace (n + (i - n) - Nat.min n (length sets))%nat with (i - n)%nat by lia.
    apply nth_In. rewrite skipn_length. lia.
  - rewrite (nth_overflow sets) in H by assumption.
    destruct (Nat.lt_ge_cases n (length sets)) as [Ln|Gn].
    + right. apply existsb_exists. exists (List.last sets []). split; [|assumption].
      rewrite <- (firstn_skipn n sets) at 1.
      assert (Ne : skipn n sets <> []) by (intros E; apply (f_equal (@length _)) in E;
        rewrite skipn_length in E; simpl in E; lia).
      rewrite (app_removelast_last [] Ne), app_assoc, last_last. apply in_or_app. right. now left.
    + left. now rewrite (nth_overflow sets).
Qed.

(* Every node is among those that are read. *)
Lemma nodes_sound w n sets ahead past i : (i <= n)%nat -> (1 <= w)%Z ->
  nodes_ok one k L w cw (Z.of_nat n) sets ahead past = true ->
  exists first last,
  (forall x, set_at sets i x = true -> first x = true) /\
  (forall x, set_at sets (i + Z.to_nat (w - 1)) x = true -> last x = true) /\
  read_ok one k L w cw first last (at_node one k ahead (Z.of_nat (n - i)))
    (at_node one k past (Z.of_nat i)) = true.
Proof.
  intros Hi Hw H. unfold nodes_ok in H. cbv zeta in H. apply andb_prop in H as [Hb Ha].
  rewrite forallb_forall in Ha, Hb.
  set (a := length (tables one k ahead)) in *. set (b := length (tables one k past)) in *.
  destruct (Nat.lt_ge_cases i b) as [Ib|Ib].
  - specialize (Hb i ltac:(apply in_seq; lia)).
    apply orb_prop in Hb as [Hb|Hb]; [ands; lia|].
    replace (Z.of_nat i <? Z.of_nat b)%Z with true in Hb by (symmetry; apply Z.ltb_lt; lia).
    rewrite Nat2Z.inj_sub by assumption. do 2 eexists. split; [|split; [|exact Hb]].
    + intros x Hx. now rewrite Z.add_0_r, Nat2Z.id.
    + intros x Hx. now replace (Z.to_nat (Z.of_nat i + (w - 1))) with (i + Z.to_nat (w - 1))%nat
        by lia.
  - assert (U : forall j x, (i <= j)%nat -> set_at sets j x = true -> sets_from sets b x = true)
      by (intros j x Hj; apply sets_from_spec; lia).
    exists (sets_from sets b), (sets_from sets b).
    split; [intros x; apply U; lia|]. split; [intros x; apply U; lia|].
    destruct (Nat.lt_ge_cases (n - i) a) as [Ia|Ia].
    + specialize (Ha (n - i)%nat ltac:(apply in_seq; lia)).
      apply orb_prop in Ha as [Ha|Ha]; [ands; lia|].
      replace (Z.of_nat n - Z.of_nat (n - i))%Z with (Z.of_nat i) in Ha by lia.
      replace (Z.of_nat i <? Z.of_nat b)%Z with false in Ha by (symmetry; apply Z.ltb_ge; lia).
      now replace (Z.of_nat n - Z.of_nat i)%Z with (Z.of_nat (n - i)) in Ha by lia.
    + specialize (Hb b ltac:(apply in_seq; lia)).
      apply orb_prop in Hb as [Hb|Hb]; [ands; lia|].
      rewrite Z.ltb_irrefl in Hb.
      assert (Far : forall s m, (length (tables one k s) <= m)%nat ->
        at_node one k s (Z.of_nat m) = bound (late s)).
      { intros s m Hm. unfold at_node.
        destruct (Z.ltb_spec (Z.of_nat m) (Z.of_nat (length (tables one k s))));
          [lia|reflexivity]. }
      rewrite Far by (fold a; lia). rewrite Far by (fold b; lia).
      replace (Z.of_nat n - Z.of_nat b)%Z with (Z.of_nat (n - b)) in Hb by lia.
      rewrite Far in Hb by (fold a; lia). rewrite Far in Hb by (fold b; lia). exact Hb.
Qed.
End read.

(* -- the stationary chain --------------------------------------------------------------------- *)

Section claim.
Variable a : claim.
Hypothesis scale_pos : (0 < Qnum (scale a))%Z.
Hypothesis epsilon_nonneg : (0 <= Qnum (epsilon a))%Z.
Hypothesis longest_pos : (1 <= longest a)%Z.
Hypothesis window_pos : (1 <= window a)%Z.

Let c := / Q2R (scale a).
Let eps := Q2R (epsilon a).

Lemma cost_c : Q2R (cost a) = c.
Proof.
  unfold cost, c. apply Q2R_inv. intros E. apply Qeq_eqR in E. rewrite RMicromega.Q2R_0 in E.
  pose proof (Q2R_pos _ scale_pos). lra.
Qed.

Lemma cost_num : (0 <= Qnum (cost a))%Z.
Proof. unfold cost, Qinv. destruct (Qnum (scale a)) eqn:E; simpl; lia. Qed.

Lemma c_nonneg : 0 <= c.
Proof. rewrite <- cost_c. apply Q2R_nonneg, cost_num. Qed.

Lemma exp_of_above h n : (0 < one h)%Z -> (0 < exp_of h (Z.of_nat n) (cost a))%Z ->
  exp c ^ n <= value (one h) (exp_of h (Z.of_nat n) (cost a)).
Proof.
  intros Ho Hp. unfold exp_of in *. pose proof cost_num.
  rewrite exp_pow, INR_IZR_INZ, <- cost_c, Q2R_frac.
  replace (IZR (Z.of_nat n) * (IZR (Qnum (cost a)) / IZR (Zpos (Qden (cost a)))))
    with (IZR (Z.of_nat n * Qnum (cost a)) / IZR (Zpos (Qden (cost a))))
    by (rewrite mult_IZR; field; apply Rgt_not_eq; now apply IZR_lt).
  apply exp_up_ge; auto; lia.
Qed.

Lemma before_path k q P i v : chain k q P -> forall x, (x < k)%nat -> below k v ->
  0 < before k q P i x -> 0 < path P i x v -> 0 < before k q P (i + length v) (last (x :: v) 0%nat).
Proof.
  intros Ch. revert i. induction v as [|y v IH]; intros i x Hx Bv Hb Hp.
  - simpl. now rewrite Nat.add_0_r.
  - simpl in Hp. inversion Bv; subst.
    assert (N1 : 0 <= P i x y) by (apply Ch; auto).
    assert (N2 : 0 <= path P (S i) y v) by (apply (path_nonneg k q P Ch); auto).
    assert (P1 : 0 < P i x y /\ 0 < path P (S i) y v).
    { destruct N1 as [|E]; [|rewrite <- E in Hp; lra].
      destruct N2 as [|E]; [|rewrite <- E in Hp; lra]. auto. }
    destruct P1 as [P1 P2].
    replace (i + length (y :: v))%nat with (S i + length v)%nat by (simpl; lia).
    change (last (x :: y :: v) 0%nat) with (last (y :: v) 0%nat).
    apply IH; auto. simpl.
    apply Rlt_le_trans with (before k q P i x * P i x y); [now apply Rmult_lt_0_compat|].
    apply (sum_term k (fun z => before k q P i z * P i z y)); [|assumption].
    intros z Hz. apply Rmult_le_pos; [|now apply Ch]. apply before_nonneg; auto; apply Ch.
Qed.

Lemma hidden_facts : (1 <= hidden a <= longest a)%Z.
Proof. unfold hidden. lia. Qed.

Lemma nodes_facts i j : (i + Z.to_nat (hidden a) + j)%nat = Z.to_nat (longest a) ->
  others a = Z.of_nat (i + j).
Proof. intros HT. pose proof hidden_facts. unfold others. lia. Qed.

(* From tables of all nodes to the loss. *)
Section loss.
Variable m : model.
Hypothesis ok : model_ok m = true.
Variable h : hints.
Hypothesis one_pos : (0 < one h)%Z.
Variable phase : nat.
Variable q : nat -> R.
Let k := states m.
Let P := steps m phase.
Hypothesis Ch : chain k q P.
Let T := Z.to_nat (longest a).
Let w := Z.to_nat (hidden a).
Let L := exp_down (one h) (halvings h) (Qnum (epsilon a)) (Zpos (Qden (epsilon a))).
Let cw := exp_of h (hidden a) (cost a).
Hypothesis cw_pos : (0 < cw)%Z.

Theorem private_by_tables :
  (forall i j, (i + w + j)%nat = T -> exists first last A B,
    bounds k (exp c) (forward k P T) (after k P T) j (real (one h) A) /\
    bounds k (exp c) (backward k q P) (before k q P) i (real (one h) B) /\
    (forall x, (x < k)%nat -> 0 < before k q P i x -> first x = true) /\
    (forall x, (x < k)%nat -> 0 < before k q P (i + w - 1) x -> last x = true) /\
    read_ok (one h) k L (hidden a) cw first last A B = true) ->
  private k q P c eps T w.
Proof.
  intros Tables f Hf i j u u' HT Lu Lu' Bu Bu'. pose proof hidden_facts as Hid.
  destruct (list_eq_dec Nat.eq_dec u u') as [<-|Ne].
  { assert (0 <= expect k q P i j u f) by (apply expect_nonneg; auto; apply Hf).
    assert (0 <= expect k q P i j u (fun _ => 1)) by (apply expect_nonneg; auto; intros; lra).
    assert (1 <= exp eps) by (apply exp_ge_1; apply Q2R_nonneg; assumption).
    assert (0 <= expect k q P i j u f * expect k q P i j u (fun _ => 1))
      by (now apply Rmult_le_pos). nra. }
  assert (W : w = Z.to_nat (hidden a)) by reflexivity.
  destruct u as [|x v]; [simpl in Lu; lia|]. destruct u' as [|x' v']; [simpl in Lu'; lia|].
  destruct (Tables i j HT) as (fst0 & lst & A & B & BA & BB & First & Last & Rd).
  assert (C1 : 1 <= exp c) by (apply exp_ge_1, c_nonneg).
  cbn [length] in Lu, Lu'.
  apply (read k q P T) with (C := exp c) (A := real (one h) A) (B := real (one h) B);
    auto; try apply Ch; try lia.
  intros B1 B2 P1 P2 _ _.
  assert (Hx : (x < k)%nat) by (now inversion Bu).
  assert (Hx' : (x' < k)%nat) by (now inversion Bu').
  assert (Hz : (List.last (x :: v) 0 < k)%nat) by (apply last_below; [discriminate|assumption]).
  assert (Hz' : (List.last (x' :: v') 0 < k)%nat) by (apply last_below; [discriminate|assumption]).
  assert (Z1 := before_path k q P i v Ch x Hx ltac:(now inversion Bu) B1 P1).
  assert (Z2 := before_path k q P i v' Ch x' Hx' ltac:(now inversion Bu') B2 P2).
  apply (read_sound (one h) one_pos k _ _ (exp eps)) with (1 :=
    exp_down_le (one h) (halvings h) (Qnum (epsilon a)) (Zpos (Qden (epsilon a))) one_pos
      epsilon_nonneg eq_refl) (2 := Rd); auto.
  - assert (Ew : hidden a = Z.of_nat (S (length v))) by lia.
    unfold cw in *. rewrite Ew in *. now apply exp_of_above.
  - apply pow_le; lra.
  - apply Last; [assumption|]. now replace (i + w - 1)%nat with (i + length v)%nat by lia.
  - apply Last; [assumption|]. now replace (i + w - 1)%nat with (i + length v')%nat by lia.
  - intros H1. assert (length v = 0%nat /\ length v' = 0%nat) as [V V'] by lia.
    destruct v; [|discriminate]. destruct v'; [|discriminate]. simpl. repeat split.
    intros ->. now apply Ne.
Qed.
End loss.

(* What is known of the distributions of nodes: their weights if the start is stationary, and the
   values that they can have. *)
Lemma start_known m h phase q :
  model_ok m = true -> period m = 1%nat ->
  starts m phase q -> chain (states m) q (steps m phase) ->
  sets_ok m (weights (stationary h) 0) (sets h) = true ->
  (initial m = Stationary ->
    stationary_ok m (stationary h) && unique_ok m (stationary h) (order h) = true) ->
  (initial m = Stationary -> exists s, 0 < s /\ forall t x, (x < states m)%nat ->
    before (states m) q (steps m phase) t x = s * IZR (weight (weights (stationary h) 0) x)) /\
  (forall n x, (x < states m)%nat -> 0 < before (states m) q (steps m phase) n x ->
    set_at (sets h) n x = true).
Proof.
  intros ok Per Hq Ch Possible Known. destruct Hq as (_ & _ & Q).
  set (k := states m) in *. set (P := steps m phase) in *.
  set (pi := weights (stationary h) 0) in *.
  assert (Stat : initial m = Stationary -> exists s, 0 < s /\
    forall t x, (x < k)%nat -> before k q P t x = s * IZR (weight pi x)).
  { intros St. specialize (Known St). rewrite St in Q. apply andb_prop in Known as [A B].
    destruct (stationary_weights m ok phase q Ch Q (stationary h) A (order h) B) as [s [Hs Eq]].
    exists s. split; [assumption|]. intros t x Hx. rewrite Eq by assumption.
    now rewrite Per, Nat.mod_1_r. }
  split; [exact Stat|].
  apply (sets_sound m phase q Ch Per pi (sets h) Possible). intros x Hx Qx.
  destruct (initial m) as [|p|] eqn:St; [|now rewrite <- Q|exact I].
  destruct (Stat eq_refl) as (s & Hs & Eq). change (q x) with (before k q P 0 x) in Qx.
  rewrite Eq in Qx by assumption. apply lt_IZR. nra.
Qed.

Theorem chain_sound m h phase q :
  model_ok m = true -> chain_ok a m h = true ->
  starts m phase q -> chain (states m) q (steps m phase) ->
  private (states m) q (steps m phase) c eps (Z.to_nat (longest a)) (Z.to_nat (hidden a)).
Proof.
  intros ok H Hq Ch. unfold chain_ok in H. cbv zeta in H.
  repeat (let X := fresh "A" in apply andb_prop in H as [H X]).
  apply Nat.eqb_eq in H. apply Z.ltb_lt in A10, A5, A4. rename H into Per, A10 into Po.
  pose proof Hq as (_ & _ & Q).
  set (k := states m) in *. set (P := steps m phase) in *. set (o := one h) in *.
  set (pi := weights (stationary h) 0) in *.
  assert (C1 : 1 <= exp c) by (apply exp_ge_1, c_nonneg).
  assert (One : (exp c <= value o (exp_of h 1 (cost a)))).
  { rewrite <- (pow_1 (exp c)). now apply (exp_of_above h 1). }
  assert (Count : forall n, (0 < exp_of h (Z.of_nat n) (cost a))%Z ->
    exp c ^ n <= value o (exp_of h (Z.of_nat n) (cost a))) by (intros n; now apply exp_of_above).
  assert (Far : forall p, (0 < exp_of h (Zpos p - 1) (cost a))%Z ->
    exp c ^ pred (Pos.to_nat p) <= value o (exp_of h (Zpos p - 1) (cost a))).
  { intros p. replace (Zpos p - 1)%Z with (Z.of_nat (pred (Pos.to_nat p))) by lia. apply Count. }
  destruct (start_known m h phase q ok Per Hq Ch A7) as [Stat Sets];
    [intros St; now rewrite St in A9|].
  assert (Kf : forall T n x z, (x < k)%nat -> (z < k)%nat -> 0 <= forward k P T n x z)
    by (intros; now apply forward_nonneg; try apply Ch).
  assert (Kb : forall n x z, (x < k)%nat -> (z < k)%nat -> 0 <= backward k q P n x z)
    by (intros; now apply backward_nonneg; try apply Ch).
  assert (Sb : forall n x, (x < k)%nat -> 0 < before k q P n x -> sums_to_1 k (backward k q P) n x)
    by (intros; now apply backward_sums_to_1; try apply Ch).
  set (l := nodes o k (forward_rows o (matrix m 0)) (fst (first_rows o m)) (snd (first_rows o m))
    (length (spreads h))) in *.
  assert (Len : length l = length (spreads h)).
  { apply nodes_length. }
  assert (Rows : initial m <> Stationary -> exists r v F, (forall i, (i < r)%nat -> 0 <= v i) /\
    (forall n x, (x < k)%nat -> before k q P n x = sum r (fun i => v i * before k (F i) P n x)) /\
    (forall n, (n < length l)%nat -> under_table o k r (fst (node_at l n)) (fun i => before k (F i)
      P n)
      /\ over_table o k r (snd (node_at l n)) (fun i => before k (F i) P n)) /\
    match initial m with Given _ => r = 1%nat /\ F = (fun _ => q) | _ => True end).
  { intros NS. destruct (first_bounds m o Po phase q Ch Per NS) as (r & v & F & V & E & U & O & G).
    { intros p St. now rewrite St in Q. }
    exists r, v, F. split; [assumption|]. split; [now apply before_mixture|]. split.
    - intros n Hn. rewrite Len in Hn. exact (nodes_bounds m ok o Po phase Per r F _ _ _ 0%nat U O n
      Hn).
    - destruct (initial m); auto. tauto. }
  assert (Spread : initial m <> Stationary -> forall n, (o <= nth n (spreads h) 0)%Z ->
    spread m phase q (stationary h) (value o (nth n (spreads h) 0%Z)) n /\
    stationary_ok m (stationary h) = true).
  { intros NS n Hn.
    assert (Ln : (n < length (spreads h))%nat).
    { destruct (Nat.lt_ge_cases n (length (spreads h))); [assumption|].
      rewrite nth_overflow in Hn by assumption. lia. }
    assert (Pis : stationary_ok m (stationary h) = true).
    { destruct (initial m); [easy| |]; (apply orb_prop in A9 as [A9|A9]; [|exact A9]);
        rewrite forallb_forall in A9; specialize (A9 _ (nth_In _ 0%Z Ln)); apply Z.leb_le in A9;
          lia. }
    split; [|assumption]. destruct (Rows NS) as (r & v & F & V & E & B & _).
    rewrite every_spec in A8. specialize (A8 n Ln). apply orb_prop in A8 as [A8|A8].
    { apply Z.leb_le in A8. lia. }
    destruct (B n ltac:(lia)) as [B1 B2].
    apply (spread_sound m ok o Po phase q Per (stationary h) Pis r v F _ (node_at l n) n); auto.
      lia. }
  assert (Near : initial m <> Stationary -> forall n D D' E,
    ((o <= D)%Z -> spread m phase q (stationary h) (value o D) n) ->
    ((o <= D')%Z -> spread m phase q (stationary h) (value o D') (S n)) ->
    ((o <= D)%Z -> stationary_ok m (stationary h) = true) ->
    enclosed o k (exp c) (backward k q P) (before k q P) n E (near_rows o k
      (backward_rows o k (matrix m 0) pi pi) D D' (growth o (exp_of h 1 (cost a)) E))).
  { intros NS n D D' E S1 S2 Pis. destruct (Z.leb_spec o D) as [HD|HD].
    - destruct (Z.leb_spec o D') as [HD'|HD'].
      + apply (near_enclosed m ok o Po (exp c) C1 phase q Ch Per (stationary h) (Pis HD) _ One);
          auto.
      + unfold near_rows. rewrite (proj2 (Z.leb_gt o D') HD'), andb_false_r.
        apply (no_rows_enclosed m o).
    - unfold near_rows. rewrite (proj2 (Z.leb_gt o D) HD). apply (no_rows_enclosed m o). }
  apply private_by_tables with h; auto.
  intros i j HT. rewrite (nodes_facts i j HT) in *.
  set (T := Z.to_nat (longest a)) in *. set (w := Z.to_nat (hidden a)) in *.
  pose proof hidden_facts as Hid.
  destruct (nodes_sound o k _ _ (hidden a) (i + j) _ (ahead h) (past h) i ltac:(lia) ltac:(lia) A)
    as (first & last & First & Last & Rd).
  exists first, last. do 2 eexists. split; [|split; [|split; [|split; [|exact Rd]]]].
  - replace (i + j - i)%nat with j by lia.
    apply (side_bounds o Po k (exp c) C1 _ One (forward k P T)) with (N := (i + j)%nat) (9 := A1)
      (n0 := length (early (ahead h))); auto; try lia.
    + intros n x Hn Hx Mx. apply forward_sums_to_1; auto; try apply Ch. lia.
    + intros n E Hn. apply (forward_enclosed m ok o Po (exp c) C1 phase q Ch); auto.
      intros. now apply (P_is m phase Per).
    + intros n p E Hn B. destruct (mixed_of _ _ _ _) as [mx|] eqn:Mx; [|exact I]. intros Pf.
      apply (forward_mixes m ok o Po (exp c) C1 phase q Ch Per (roots h) A6 _ p (Far p Pf));
        auto. lia.
    + intros n E Hn. apply (forward_enclosed m ok o Po (exp c) C1 phase q Ch); auto.
      intros. now apply (P_is m phase Per).
    + intros n p E Hn B. destruct (mixed_of _ _ _ _) as [mx|] eqn:Mx; [|exact I]. intros Pf.
      destruct (Nat.lt_ge_cases n (Pos.to_nat p)) as [Lt|Ge].
      * apply (count_mixes m o (exp c) C1); auto.
        -- intros x Hx Ma. apply forward_sums_to_1; auto; try apply Ch. lia.
        -- apply Rle_trans with (2 := Far p Pf). apply Rle_pow; [assumption|lia].
      * replace n with (Pos.to_nat p + (n - Pos.to_nat p))%nat by lia.
        apply (forward_mixes m ok o Po (exp c) C1 phase q Ch Per (roots h) A6 _ p (Far p Pf)); auto;
          [lia|]. apply B. lia.
  - apply (side_bounds o Po k (exp c) C1 _ One (backward k q P)) with (N := (i + j)%nat) (9 := A0)
      (n0 := length (early (past h))); auto; try lia.
    + intros n E Hn. destruct (initial m) as [|p|] eqn:St.
      * destruct (Stat eq_refl) as (s & Hs & Eq).
        apply (backward_enclosed m o Po (exp c) C1 phase q Ch) with (s := s); auto.
        intros. now apply (P_is m phase Per).
      * destruct (Rows ltac:(discriminate)) as (r & v & F & _ & _ & B & -> & ->).
        apply (given_enclosed m ok o Po (exp c) C1 phase q Ch Per). intros jj _ Hj. now apply B.
      * assert (NS : Any <> Stationary) by discriminate.
        apply Near; auto; intros HD; [|apply (Spread NS (S n) HD)|]; apply (Spread NS n HD).
    + intros n p E Hn B. destruct (mixed_of _ _ _ _) as [mx|] eqn:Mx; [|exact I]. intros Pf.
      apply (backward_mixes m ok o Po (exp c) C1 phase q Ch Per (roots h) A6 _ p (Far p Pf)) with
        (1 := Mx); auto.
    + intros n E Hn.
      assert (Ls : initial m <> Stationary -> forall D n1, (n1 <= n)%nat ->
        D = nth n1 (spreads h) 0%Z ->
        enclosed o k (exp c) (backward k q P) (before k q P) n E (near_rows o k
          (backward_rows o k (matrix m 0) pi pi) D D (growth o (exp_of h 1 (cost a)) E))).
      { intros NS D n1 Hn1 ->. assert (L : (o <= nth n1 (spreads h) 0)%Z ->
        forall n', (n1 <= n')%nat ->
          spread m phase q (stationary h) (value o (nth n1 (spreads h) 0%Z)) n').
        { intros HD n' Hj. destruct (Spread NS n1 HD) as [Sp Pis].
          replace n' with (n1 + (n' - n1))%nat by lia.
          now apply (spread_later m ok phase q Ch Per (stationary h) Pis). }
        apply Near; auto. intros HD. now apply (Spread NS n1 HD). }
      destruct (initial m) as [|p|] eqn:St.
      * destruct (Stat eq_refl) as (s & Hs & Eq).
        apply (backward_enclosed m o Po (exp c) C1 phase q Ch) with (s := s); auto.
        intros. now apply (P_is m phase Per).
      * apply Ls with (length (early (past h))); auto; [discriminate|lia].
      * apply Ls with (length (early (past h))); auto; [discriminate|lia].
    + intros n p E Hn B. destruct (mixed_of _ _ _ _) as [mx|] eqn:Mx; [|exact I]. intros Pf.
      destruct (Nat.lt_ge_cases n (Pos.to_nat p)) as [Lt|Ge].
      * apply (count_mixes m o (exp c) C1); auto.
        apply Rle_trans with (2 := Far p Pf). apply Rle_pow; [assumption|lia].
      * replace n with (Pos.to_nat p + (n - Pos.to_nat p))%nat by lia.
        apply (backward_mixes m ok o Po (exp c) C1 phase q Ch Per (roots h) A6 _ p (Far p Pf)) with
          (1 := Mx); auto.
        -- intros z Hz Bz. apply sets_from_spec with (i := (n - Pos.to_nat p)%nat); [lia|auto].
        -- apply B. lia.
  - intros x Hx Bx. apply First. now apply Sets.
  - intros x Hx Bx. apply Last. replace (i + Z.to_nat (hidden a - 1))%nat with (i + w - 1)%nat
      by (unfold w; lia). now apply Sets.
Qed.
Theorem periodic_chain_sound m h phase q :
  model_ok m = true -> periodic_chain_ok a m h = true -> initial m = Stationary ->
  starts m phase q -> chain (states m) q (steps m phase) ->
  private (states m) q (steps m phase) c eps (Z.to_nat (longest a)) (Z.to_nat (hidden a)).
Proof.
  intros ok H St Hq Ch. unfold periodic_chain_ok in H. cbv zeta in H.
  repeat (let X := fresh "A" in apply andb_prop in H as [H X]).
  apply Z.ltb_lt in H, A5, A4. rename H into One0.
  destruct Hq as (_ & _ & Q). rewrite St in Q.
  set (k := states m) in *. set (P := steps m phase) in *. set (N := period m) in *.
  assert (Np : (0 < N)%nat) by (now apply period_pos).
  destruct (stationary_weights m ok phase q Ch Q (stationary h) A7 (order h) A6) as [s [Hs Eq]].
  fold k P N in Eq.
  assert (C1 : 1 <= exp c) by (apply exp_ge_1, c_nonneg).
  assert (One : (exp c <= value (one h) (exp_of h 1 (cost a)))).
  { rewrite <- (pow_1 (exp c)). now apply (exp_of_above h 1). }
  assert (Count : forall n, (0 < exp_of h (Z.of_nat n) (cost a))%Z ->
    exp c ^ n <= value (one h) (exp_of h (Z.of_nat n) (cost a))).
  { intros n. now apply exp_of_above. }
  assert (Can : forall t y, (y < k)%nat -> 0 < before k q P t y ->
    (0 <? weight (weights (stationary h) ((phase + t) mod N)) y)%Z = true).
  { intros t y Hy Pos. rewrite Eq in Pos by assumption. apply Z.ltb_lt, lt_IZR.
    destruct (Rlt_le_dec 0 (IZR (weight (weights (stationary h) ((phase + t) mod N)) y)));
      [assumption|nra]. }
  assert (PE : forall t x z, P t x z = Q2R (at_xy (matrix m ((phase + t) mod N)) x z)).
  { intros t x z. unfold P, steps, N. now rewrite matrix_mod. }
  assert (Prev : forall t, ((S t mod N + (N - 1)) mod N = t mod N)%nat).
  { intros t. rewrite Nat.add_mod_idemp_l by lia.
    replace (S t + (N - 1))%nat with (t + 1 * N)%nat by lia.
    apply Nat.mod_add. lia. }
  assert (Low := proj1 (every_spec _ _) A3). assert (Low' := proj1 (every_spec _ _) A2).
  assert (Read := proj1 (every_spec _ _) A). clear A A2 A3. cbv beta in Low, Low', Read.
  apply private_by_tables with h; auto.
  intros i j HT. rewrite (nodes_facts i j HT) in *. pose proof hidden_facts as Hid.
  set (T := Z.to_nat (longest a)) in *. set (w := Z.to_nat (hidden a)) in *.
  pose (pf := fun n => ((phase + (T - 1 - n)) mod N)%nat).
  pose (pb := fun n => ((phase + n) mod N)%nat).
  exists (fun x => (0 <? weight (weights (stationary h) (pb i)) x)%Z),
    (fun x => (0 <? weight (weights (stationary h) (pf j)) x)%Z),
    (at_phase (cycle_ahead h) (pf j)), (at_phase (cycle_past h) (pb i)).
  assert (Hw : (1 <= w)%nat) by (unfold w; lia).
  assert (Pj : pf j = ((phase + (i + w - 1)) mod N)%nat)
    by (unfold pf; now replace (T - 1 - j)%nat with (i + w - 1)%nat by lia).
  repeat split.
  - apply (cycle_bounds (one h) One0 k (exp c) C1 _ One (forward k P T)) with (4 := A1)
      (N := (i + j)%nat);
      auto; try lia.
    + intros; now apply forward_nonneg; try apply Ch.
    + intros n x Hn Hx Mx. apply forward_sums_to_1; auto; try apply Ch. lia.
    + intros n Hn. apply Nat.mod_upper_bound. lia.
    + intros n Hn. split.
      * unfold pf. replace (T - 1 - n)%nat with (S (T - 1 - S n)) by lia.
        rewrite <- (Nat.add_1_r (_ mod _)), Nat.add_mod_idemp_l by lia. f_equal. lia.
      * intros E. apply (forward_enclosed m ok (one h) One0 (exp c) C1 phase q Ch);
          [|apply Low, Nat.mod_upper_bound; lia].
        intros x z _ _. unfold pf. replace (T - 1 - S n)%nat with (T - 2 - n)%nat by lia. apply PE.
  - apply (cycle_bounds (one h) One0 k (exp c) C1 _ One (backward k q P)) with (4 := A0)
      (N := (i + j)%nat);
      auto; try lia.
    + intros; now apply backward_nonneg; try apply Ch.
    + intros n x Hn Hx Mx. now apply backward_sums_to_1; try apply Ch.
    + intros n Hn. apply Nat.mod_upper_bound. lia.
    + intros n Hn. assert (E : ((pb (S n) + (N - 1)) mod N = pb n)%nat).
      { unfold pb. rewrite Nat.add_succ_r. apply Prev. }
      split; [exact E|]. intros F.
      apply (backward_enclosed m (one h) One0 (exp c) C1 phase q Ch) with (s := s); auto.
      * intros x Hx. rewrite E. now apply Eq.
      * intros x Hx. now apply Eq.
      * intros x z _ _. rewrite E. apply PE.
      * apply Low', Nat.mod_upper_bound. lia.
  - intros x Hx. apply Can. assumption.
  - intros x Hx Pos. rewrite Pj. now apply Can.
  - assert (R := Read (pb i) ltac:(apply Nat.mod_upper_bound; lia)). cbv beta in R.
    replace (Z.to_nat ((Z.of_nat (pb i) + hidden a - 1) mod Z.of_nat N)) with (pf j) in R;
      [exact R|].
    rewrite Pj. unfold pb.
    replace (Z.of_nat ((phase + i) mod N) + hidden a - 1)%Z
      with (Z.of_nat ((phase + i) mod N + (w - 1))) by (unfold w in *; lia).
    rewrite <- Nat2Z.inj_mod, Nat2Z.id, Nat.add_mod_idemp_l by lia. f_equal. lia.
Qed.
(* -- Markov quilts ---------------------------------------------------------------------------- *)

Section ratio.
Variable o : Z.
Hypothesis o_pos : (0 < o)%Z.
Variable k : nat.

Lemma ratio_sound (high low : nat -> nat -> Z) (A : nat -> nat -> R) src F x y G :
  ratio_ok o k high low src F = true -> (x < k)%nat -> (y < k)%nat -> (0 < get F x y)%Z ->
  (forall x z, (x < k)%nat -> (z < k)%nat ->
   0 <= A x z /\ value o (low x z) <= A x z /\ A x z <= value o (high x z)) ->
  (forall z, (z < k)%nat -> 0 <= G z /\ (0 < G z -> src z = true)) ->
  sum k (fun z => A x z * G z) <= value o (get F x y) * sum k (fun z => A y z * G z).
Proof.
  intros H Hx Hy Pos HA HG. unfold ratio_ok in H. rewrite every_spec in H. specialize (H x Hx).
  rewrite every_spec in H. specialize (H y Hy). cbv zeta in H. set (e := get F x y) in *.
  assert (Po : 0 < IZR o) by (now apply IZR_lt).
  apply orb_prop in H as [H|H]; [apply orb_prop in H as [H|H]|].
  - apply Z.leb_le in H. lia.
  - apply andb_prop in H as [E H]. apply Nat.eqb_eq in E. subst y. apply Z.leb_le in H.
    apply (value_le o _ _ o_pos) in H. rewrite one_value in H by assumption.
    assert (0 <= sum k (fun z => A x z * G z)).
    { apply sum_nonneg; intros z Hz. apply Rmult_le_pos; [now apply HA|now apply HG]. }
    nra.
  - rewrite every_spec in H. rewrite <- sum_scale. apply sum_le; intros z Hz.
    destruct (HG z Hz) as [[G0|G0] Src]; [|rewrite <- G0; lra].
    specialize (H z Hz). rewrite (Src G0) in H. simpl in H. apply Z.leb_le, IZR_le in H.
    rewrite !mult_IZR in H. destruct (HA x z Hx Hz) as (_ & _ & H1).
      destruct (HA y z Hy Hz) as (_ & H2 & _).
    assert (E0 : 0 <= value o e) by (left; now apply value_pos).
    rewrite <- Rmult_assoc. apply Rmult_le_compat_r; [lra|].
    apply Rle_trans with (1 := H1). apply Rle_trans with (value o e * value o (low y z));
      [|now apply Rmult_le_compat_l].
    unfold value. apply Rmult_le_reg_r with (IZR o * IZR o); [nra|].
    match goal with |- ?l <= ?r => replace l with (IZR (high x z) * IZR o) by (field; lra);
      replace r with (IZR e * IZR (low y z)) by (field; lra) end. exact H.
Qed.

(* A table of COUNT. *)
Lemma level_bounds C K mass n N d : 1 <= C ->
  (forall n x z, (x < k)%nat -> (z < k)%nat -> 0 <= K n x z) ->
  (forall x, (x < k)%nat -> 0 < mass n x -> sums_to_1 k K n x) -> C ^ N <= value o d ->
  (n <= N)%nat -> bounds k C K mass n (real o (repeat (repeat d k) k)).
Proof.
  intros C1 Kn Sums Hd Hn x y g Hx Hy Mx My Pos L. unfold real. rewrite (ones_get d) by assumption.
  apply Rle_trans with (1 := Sides.count k C C1 K Kn n x y g Hx Hy (Sums x Hx Mx) (Sums y Hy My) L).
  apply Rmult_le_compat_r; [apply beyond_nonneg; auto; intro; apply L|].
  apply Rle_trans with (2 := Hd). now apply Rle_pow.
Qed.

Lemma growth_value d E x y : (0 < real o (growth o d E) x y) -> (0 < d)%Z ->
  (0 < get E x y)%Z /\ value o d * real o E x y <= real o (growth o d E) x y.
Proof.
  intros P Pd. assert (Po : 0 < IZR o) by (now apply IZR_lt). unfold real in *.
  rewrite growth_get in * by assumption. apply value_pos in P; [|assumption].
  assert (Pe : (0 < get E x y)%Z).
  { destruct (Z.lt_ge_cases 0 (get E x y)) as [|Ge]; [assumption|exfalso].
    unfold up in P. assert (0 <= - (d * get E x y) / o)%Z by (apply Z.div_pos; nia). lia. }
  split; [assumption|]. pose proof (up_ge (d * get E x y) o o_pos) as U. rewrite mult_IZR in U.
  unfold value. apply Rmult_le_reg_r with (1 := Po).
  match goal with |- ?l <= ?r => replace l with (IZR d * IZR (get E x y) / IZR o) by (field; lra);
    replace r with (IZR (up (d * get E x y) o)) by (field; lra) end. exact U.
Qed.
End ratio.

Lemma set_at_far sets n : (length sets <= n)%nat -> set_at sets n = set_at sets (length sets).
Proof. intros H. unfold set_at. now rewrite !(nth_overflow sets) by lia. Qed.

Lemma clipped_set sets n : set_at sets (clipped sets (Z.of_nat n)) = set_at sets n.
Proof.
  unfold clipped. destruct (Nat.le_gt_cases (length sets) n) as [H|H].
  - rewrite (set_at_far sets n H). f_equal. lia.
  - f_equal. lia.
Qed.

Lemma sets_of_spec sets first n last : (first <= Z.of_nat n <= last)%Z ->
  In (clipped sets (Z.of_nat n)) (sets_of sets first last).
Proof. intros H. apply in_seq. unfold clipped. lia. Qed.

Lemma ratio_rows o k r v F lo hi e (b : nat -> R) x y :
  (0 < o)%Z -> (forall i, (i < r)%nat -> 0 <= v i) ->
  (forall x, (x < k)%nat -> b x = sum r (fun i => v i * F i x)) ->
  under_table o k r lo F -> over_table o k r hi F -> (x < k)%nat -> (y < k)%nat -> (0 < e)%Z ->
  every (length lo) (fun i => get hi i y * o <=? e * get lo i x)%Z = true ->
  b y <= value o e * b x.
Proof.
  intros Po V E [Len Lo] [_ Hi] Hx Hy Pe H. rewrite Len, every_spec in H.
  rewrite !E, <- sum_scale by assumption. apply sum_le; intros i Hi'. specialize (H i Hi').
  apply Z.leb_le, IZR_le in H. rewrite !mult_IZR in H. specialize (V i Hi').
  destruct (Hi i y Hi' Hy) as [_ H2]. destruct (Lo i x Hi' Hx) as [_ H1].
  assert (PoR : 0 < IZR o) by (now apply IZR_lt).
  assert (E0 : 0 <= value o e) by (left; now apply value_pos).
  assert (F i y <= value o e * F i x); [|nra].
  apply Rle_trans with (1 := H2). apply Rle_trans with (value o e * real o lo i x);
    [|now apply Rmult_le_compat_l].
  unfold real, value. apply Rmult_le_reg_r with (IZR o * IZR o); [nra|].
  match goal with |- ?l <= ?r => replace l with (IZR (get hi i y) * IZR o) by (field; lra);
    replace r with (IZR e * IZR (get lo i x)) by (field; lra) end. exact H.
Qed.

Lemma own_sound m o phase q pi f single F i x y :
  model_ok m = true -> (0 < o)%Z -> starts m phase q -> chain (states m) q (steps m phase) ->
  period m = 1%nat ->
  (initial m = Stationary -> exists s, 0 < s /\ forall t x, (x < states m)%nat ->
    before (states m) q (steps m phase) t x = s * IZR (weight pi x)) ->
  own_ok o m pi f single F = true -> (single = true -> i = Pos.to_nat f) ->
    (Pos.to_nat f <= i)%nat ->
  (x < states m)%nat -> (y < states m)%nat -> (0 < get F x y)%Z ->
  before (states m) q (steps m phase) i y
  <= value o (get F x y) * before (states m) q (steps m phase) i x.
Proof.
  intros ok Po Hq Ch Per Stat H Single Hi Hx Hy Pos. unfold own_ok in H. cbv zeta in H.
  set (k := states m) in *. set (P := steps m phase) in *.
  rewrite every_spec in H. specialize (H x Hx). rewrite every_spec in H. specialize (H y Hy).
  apply orb_prop in H as [H|H]; [apply Z.leb_le in H; lia|].
  assert (Low := powers_below m ok o Po phase Per f).
    assert (High := powers_above m ok o Po phase Per f).
  fold k P in Low, High. assert (Same := P_same m phase Per). fold P in Same.
  assert (PoR : 0 < IZR o) by (now apply IZR_lt).
  assert (Bn : forall n x, (x < k)%nat -> 0 <= before k q P n x)
    by (intros; apply before_nonneg; auto; apply Ch).
  assert (Rows : every (length (low (rows_after o k (matrix m 0) f))) (fun i =>
      get (high (rows_after o k (matrix m 0) f)) i y * o
      <=? get F x y * get (low (rows_after o k (matrix m 0) f)) i x)%Z = true ->
    before k q P i y <= value o (get F x y) * before k q P i x).
  { intros R. apply (ratio_rows o k k (before k q P (i - Pos.to_nat f))
      (power k P 0 (Pos.to_nat f)) _ _ _ (before k q P i) x y Po) with (8 := R); auto.
    intros u Hu. replace i with (i - Pos.to_nat f + Pos.to_nat f)%nat at 1 by lia.
    rewrite (before_power k q P _ _ u Hu). now rewrite (power_same k P _ Same (i - Pos.to_nat f)). }
  destruct (initial m) as [|p|] eqn:St; [|destruct single; [|exact (Rows H)]|exact (Rows H)].
  - destruct (Stat eq_refl) as (s & Hs & Eq). rewrite !Eq by assumption.
    rewrite every_spec in H. specialize (H 0%nat (le_n 1)). apply Z.leb_le, IZR_le in H.
    rewrite !mult_IZR in H.
    unfold get in H. simpl in H. fold (weight pi x) (weight pi y) in H.
    unfold get. apply Rmult_le_reg_r with (1 := PoR). unfold value, get.
    match goal with |- ?l <= ?r => replace r with (s * (IZR (nth y (nth x F []) 0%Z)
      * IZR (weight pi x))) by (field; lra) end. nra.
  - rewrite (Single eq_refl) in *. destruct (first_bounds m o Po phase q Ch Per) as
      (r & v & G & V & E & U & O & Gv); [rewrite St; discriminate| |].
    { intros p' St'. destruct Hq as (_ & _ & Hq). now rewrite St' in Hq. }
    rewrite St in Gv. destruct Gv as (-> & -> & ->).
    cbn [fst snd] in H.
    apply (ratio_rows o k 1 (fun _ => 1) (fun _ => before k q P (Pos.to_nat f)) _ _ _ _ x y Po)
      with (8 := H); auto; try (intros; simpl; lra).
    + apply under_ext with (2 := product_under o Po k 1 _ _ _ _ U Low). intros _ z _ Hz.
      symmetry. apply (before_power k q P 0 (Pos.to_nat f) z Hz).
    + apply over_ext with (2 := product_over o Po k 1 _ _ _ _ O High). intros _ z _ Hz.
      symmetry. apply (before_power k q P 0 (Pos.to_nat f) z Hz).
Qed.

Theorem quilts_sound m h phase q :
  model_ok m = true -> quilts_ok a m h = true ->
  starts m phase q -> chain (states m) q (steps m phase) ->
  private (states m) q (steps m phase) c eps (Z.to_nat (longest a)) (Z.to_nat (hidden a)).
Proof.
  intros ok H Hq Ch. unfold quilts_ok in H. cbv zeta in H.
  repeat (let X := fresh "A" in apply andb_prop in H as [H X]).
  apply Nat.eqb_eq in H. apply Z.ltb_lt in A6, A5. rename H into Per, A6 into Po.
  set (k := states m) in *. set (P := steps m phase) in *. set (o := one h) in *.
  set (pi := weights (stationary h) 0) in *.
  assert (C1 : 1 <= exp c) by (apply exp_ge_1, c_nonneg).
  assert (PoR : 0 < IZR o) by (now apply IZR_lt).
  assert (Count : forall n, (0 < exp_of h (Z.of_nat n) (cost a))%Z ->
    exp c ^ n <= value o (exp_of h (Z.of_nat n) (cost a))) by (intros n; now apply exp_of_above).
  destruct (start_known m h phase q ok Per Hq Ch A3) as [Stat Sets];
    [intros St; now rewrite St in A4|].
  assert (Kf : forall T n x z, (x < k)%nat -> (z < k)%nat -> 0 <= forward k P T n x z)
    by (intros; now apply forward_nonneg; try apply Ch).
  assert (Kb : forall n x z, (x < k)%nat -> (z < k)%nat -> 0 <= backward k q P n x z)
    by (intros; now apply backward_nonneg; try apply Ch).
  assert (Bn : forall n x, (x < k)%nat -> 0 <= before k q P n x)
    by (intros; apply before_nonneg; auto; apply Ch).
  assert (Same := P_same m phase Per). fold P in Same.
  assert (Low := powers_below m ok o Po phase Per).
    assert (High := powers_above m ok o Po phase Per).
  fold k P in Low, High.
  assert (Zero : forall K mass n, bounds k (exp c) K mass n (fun _ _ => 0))
    by (intros K mass n x y g _ _ _ _ F; lra).
  assert (Range : forall n u v, (u < k)%nat -> (v < k)%nat -> 0 <= power k P 0 (Pos.to_nat n) u v /\
    value o (get (low (rows_after o k (matrix m 0) n)) u v) <= power k P 0 (Pos.to_nat n) u v /\
    power k P 0 (Pos.to_nat n) u v <= value o (get (high (rows_after o k (matrix m 0) n)) u v)).
  { intros n u v Hu Hv. destruct (Low n) as [_ L1]. destruct (L1 u v Hu Hv) as [_ L2].
    destruct (High n) as [_ H1]. destruct (H1 u v Hu Hv) as [H2 H3]. auto. }
  apply private_by_tables with h; auto.
  intros i j HT. rewrite (nodes_facts i j HT) in *. pose proof hidden_facts as Hid.
  set (T := Z.to_nat (longest a)) in *. set (w := Z.to_nat (hidden a)) in *.
  assert (Hw : (1 <= w)%nat) by (unfold w; lia).
  destruct (covering_spec _ _ _ A0 (Z.of_nat i + 1)%Z ltac:(lia))
    as (s' & In1 & R1 & R2 & R3 & Le & Ri).
  rewrite forallb_forall in A. specialize (A s' In1). cbv beta in A.
  apply andb_prop in A as [A Rd]. apply andb_prop in A as [Al Ar].
  rewrite forallb_forall in Rd.
  specialize (Rd _ (sets_of_spec (sets h) (from s' - 1) i (upto s' - 1) ltac:(lia))).
  rewrite clipped_set in Rd.
  set (lastset := (clipped (sets h) (Z.of_nat i)
    + Z.to_nat (Z.min (hidden a - 1) (Z.of_nat (length (sets h)))))%nat) in *.
  assert (EL : set_at (sets h) lastset = set_at (sets h) (i + w - 1)).
  { unfold lastset, clipped, w.
    destruct (Nat.le_gt_cases (length (sets h)) (i + Z.to_nat (hidden a) - 1)) as [Hl|Hl].
    - rewrite (set_at_far _ (i + Z.to_nat (hidden a) - 1)) by assumption. rewrite set_at_far by lia.
      reflexivity.
    - f_equal. lia. }
  rewrite EL in Rd. clear EL lastset.
  do 4 eexists. split; [|split; [|split; [|split; [|exact Rd]]]];
    [| |intros x Hx; now apply Sets|intros x Hx; now apply Sets]; clear Rd.
  - assert (Sf : forall n x, (n < T)%nat -> (x < k)%nat -> 0 < after k P T n x ->
      sums_to_1 k (forward k P T) n x) by (intros; apply forward_sums_to_1; auto; apply Ch).
    destruct (to_right s') as [n|].
    + specialize (Ri n eq_refl). apply Z.ltb_lt in Ar.
      destruct (find _ (quilts_ahead h)) as [p|] eqn:Fi.
      2: { intros x y g _ _ _ _ F. unfold real, value, get in F.
           destruct x, y; simpl in F; unfold Rdiv in F; rewrite Rmult_0_l in F; lra. }
      apply find_some in Fi as [In2 E]. apply Pos.eqb_eq in E.
      unfold ratios_ok in A2. rewrite forallb_forall in A2. specialize (A2 p In2).
        cbv beta zeta in A2.
      rewrite E in A2.
      assert (exists d, Pos.to_nat n = S d) as [d Ed] by (exists (Pos.to_nat n - 1)%nat; lia).
      assert (exists r, j = (S d + r)%nat) as [r Er] by (exists (j - S d)%nat; lia).
      replace (Z.pos n - 1)%Z with (Z.of_nat d) in * by lia.
      intros x y g Hx Hy _ _ Pos L. apply growth_value in Pos as [Pe Ge]; auto.
      destruct (block k (exp c) C1 _ (Kf T) (after k P T) d r _ g (Zero _ _ _) L) as (F & Gr & Bl).
      rewrite Er. destruct (Bl x Hx) as [Bx _]. destruct (Bl y Hy) as [_ By].
      assert (Th : forall x, (x < k)%nat -> through k (forward k P T) (S d) r x F
        = sum k (fun z => power k P 0 (Pos.to_nat n) x z * F z)).
      { intros u Hu. rewrite (forward_through k P T r (S d) (T - 1 - r - S d)) by
          (auto; try lia; intros; now apply (forward_P m ok)).
        now rewrite (power_same k P (S d) Same), Ed. }
      assert (Ra := ratio_sound o Po k _ _ (fun x z => power k P 0 (Pos.to_nat n) x z) _ _ x y F A2
        Hx Hy Pe (Range n) (fun z Hz => conj (proj1 Gr z Hz) (fun _ => eq_refl))).
      rewrite <- !Th in Ra by assumption.
      assert (Vr : 0 <= value o (get (ratios p) x y)) by (left; now apply value_pos).
      apply Rle_trans with (1 := Bx). apply Rle_trans with (1 := Ra).
      assert (Pg : 0 <= beyond k (forward k P T) (S d + r) y g)
        by (apply beyond_nonneg; auto; intro; apply L).
      apply Rle_trans with (value o (get (ratios p) x y) * (exp c ^ d
        * beyond k (forward k P T) (S d + r) y g)); [now apply Rmult_le_compat_l|].
      rewrite <- Rmult_assoc. apply Rmult_le_compat_r; [assumption|].
      apply Rle_trans with (2 := Ge). rewrite Rmult_comm. unfold real.
      apply Rmult_le_compat_r; [assumption|]. now apply Count.
    + apply Z.ltb_lt in Ar.
      replace (Z.of_nat (i + j) + 1 - from s')%Z
        with (Z.of_nat (Z.to_nat (Z.of_nat (i + j) + 1 - from s'))) in * by lia.
      apply (level_bounds o k) with (N := Z.to_nat (Z.of_nat (i + j) + 1 - from s')); auto; [|lia].
      intros; apply Sf; auto; lia.
  - assert (Sb : forall n x, (x < k)%nat -> 0 < before k q P n x ->
    sums_to_1 k (backward k q P) n x)
      by (intros; now apply backward_sums_to_1; try apply Ch).
    destruct (to_left s') as [n|].
    + specialize (Le n eq_refl). apply andb_prop in Al as [Al Src].
      apply andb_prop in Al as [Al Own].
      apply andb_prop in Al as [Cn Aw]. apply Z.ltb_lt in Cn. apply Z.eqb_eq in Aw.
      injection Aw as Aw. set (left := nth (place s') (quilts_past h) no_ratio) in *.
      destruct (from s' - 1)%Z as [|f|] eqn:Ef; try discriminate.
      assert (exists d, Pos.to_nat n = S d) as [d Ed] by (exists (Pos.to_nat n - 1)%nat; lia).
      assert (exists r, i = (S d + r)%nat) as [r Er] by (exists (i - S d)%nat; lia).
      replace (Z.pos n - 1)%Z with (Z.of_nat d) in * by lia.
      intros x y g Hx Hy Mx My Pos L. unfold real in Pos |- *. rewrite get_seq in * by assumption.
      fold o in Pos |- *. set (E := growth o (exp_of h (Z.of_nat d) (cost a)) (ratios left)) in *.
      apply value_pos in Pos; [|assumption].
      assert (Pe : (0 < get E x y)%Z /\ (0 < get (own s') x y)%Z).
      { unfold up in Pos. assert (forall u, (0 <= u)%Z -> (0 < - (- u / o))%Z -> (0 < u)%Z).
        { intros u [Hu| <-]%Zle_lt_or_eq Hd; [assumption|]. rewrite Z.div_0_l in Hd by lia. lia. }
        apply H in Pos; nia. }
      destruct Pe as [PE PO].
      rewrite !Z.max_r by lia. assert (PEr : 0 < real o E x y) by (now apply value_pos).
      apply growth_value in PEr as [Pr Ge]; auto.
      unfold ratios_ok in A1. rewrite forallb_forall in A1.
      assert (Il : In left (quilts_past h)).
      { unfold left. destruct (Nat.lt_ge_cases (place s') (length (quilts_past h))) as [Lt|Gt];
          [now apply nth_In|]. unfold left in Pr. rewrite nth_overflow in Pr by assumption.
        unfold get in Pr. simpl in Pr. destruct x, y; simpl in Pr; lia. }
      specialize (A1 left Il). cbv beta zeta in A1. rewrite Aw in A1.
      rewrite forallb_forall in Src.
      specialize (Src _ (sets_of_spec (sets h) (Z.pos f - Z.pos n) r (upto s' - 1 - Z.pos n)
        ltac:(lia))).
      rewrite clipped_set, every_spec in Src.
      destruct (block k (exp c) C1 _ Kb (before k q P) d r _ g (Zero _ _ _) L) as (F & Gr & Bl).
      destruct (Bl x Hx) as [Bx _]. destruct (Bl y Hy) as [_ By].
      assert (Th : forall x, (x < k)%nat -> before k q P i x * through k (backward k q P) (S d) r x
        F
        = sum k (fun z => power k P 0 (Pos.to_nat n) z x * (before k q P r z * F z))).
      { intros u Hu. rewrite Er, (backward_through k P q Ch r (S d) u F Hu).
        rewrite (power_same k P (S d) Same r), Ed. apply sum_ext; intros; ring. }
      assert (Ra := ratio_sound o Po k _ _ (fun x z => power k P 0 (Pos.to_nat n) z x) _ _ x y
        (fun z => before k q P r z * F z) A1 Hx Hy Pr (fun x z Hx Hz => Range n z x Hz Hx)).
      cbv beta in Ra. rewrite <- !Th in Ra by assumption.
      assert (Ra' : before k q P i x * through k (backward k q P) (S d) r x F
        <= value o (get (ratios left) x y)
           * (before k q P i y * through k (backward k q P) (S d) r y F)).
      { apply Ra. intros z Hz. split; [apply Rmult_le_pos; [auto|now apply Gr]|]. intros Pz.
        specialize (Src z Hz). apply orb_prop in Src as [Src|Src]; [|exact Src].
        apply negb_true_iff in Src. rewrite (Sets r z Hz) in Src; [discriminate|].
        destruct (Bn r z Hz) as [|Z0]; [assumption|]. rewrite <- Z0, Rmult_0_l in Pz. lra. }
      assert (Ow := own_sound m o phase q pi f _ (own s') i x y ok Po Hq Ch Per Stat Own).
      fold k P in Ow. specialize (Ow ltac:(intros E1; apply Z.eqb_eq in E1;
        lia) ltac:(lia) Hx Hy PO).
      set (vr := value o (get (ratios left) x y)) in *. set (vo := value o (get (own s') x y)) in *.
      assert (Vr : 0 <= vr) by (left; now apply value_pos).
      assert (Vo : 0 <= vo) by (left; now apply value_pos).
      assert (Cd := Count d Cn).
      assert (Pg : 0 <= beyond k (backward k q P) i y g)
        by (apply beyond_nonneg; auto; intro; apply L).
      rewrite <- Er in Bx, By.
      apply Rle_trans with (value o (get E x y) * vo * beyond k (backward k q P) i y g).
      2: { apply Rmult_le_compat_r; [assumption|]. unfold vo, value.
           pose proof (up_ge (get E x y * get (own s') x y) o Po) as U. rewrite mult_IZR in U.
           apply Rmult_le_reg_r with (1 := PoR).
           match goal with |- ?l <= ?r =>
             replace l with (IZR (get E x y) * IZR (get (own s') x y) / IZR o) by (field; lra);
             replace r with (IZR (up (get E x y * get (own s') x y) o)) by (field; lra) end.
               exact U. }
      apply Rmult_le_reg_l with (before k q P i x); [exact Mx|].
      apply Rle_trans with (before k q P i x * through k (backward k q P) (S d) r x F);
        [apply Rmult_le_compat_l; [now apply Bn|exact Bx]|].
      apply Rle_trans with (1 := Ra').
      apply Rle_trans with (vr * (vo * before k q P i x * (exp c ^ d * beyond k (backward k q P) i
        y g))).
      * apply Rmult_le_compat_l; [assumption|]. apply Rmult_le_compat; auto.
        -- apply through_nonneg; auto. intros z Hz. now apply Gr.
      * replace (vr * (vo * before k q P i x * (exp c ^ d * beyond k (backward k q P) i y g)))
          with (exp c ^ d * vr * (vo * before k q P i x * beyond k (backward k q P) i y g)) by ring.
        replace (before k q P i x * (value o (get E x y) * vo * beyond k (backward k q P) i y g))
          with (value o (get E x y) * (vo * before k q P i x * beyond k (backward k q P) i y g)) by
            ring.
        apply Rmult_le_compat_r;
          [apply Rmult_le_pos; [apply Rmult_le_pos; [assumption|now apply Bn]|assumption]|].
        apply Rle_trans with (2 := Ge). apply Rmult_le_compat_r; assumption.
    + apply Z.ltb_lt in Al. replace (upto s' - 1)%Z with (Z.of_nat (Z.to_nat (upto s' - 1))) in *
      by lia.
      apply (level_bounds o k) with (N := Z.to_nat (upto s' - 1)); auto. lia.
Qed.

(* -- mixing families ----------------------------------------------------------------------- *)

Lemma all2_spec f l s : all2 f l s = true ->
  forall n, (n < length l)%nat -> (n < length s)%nat -> f (nth n l 0%Z) (nth n s 0%Z) = true.
Proof.
  revert s; induction l as [|x l IH]; intros [|y s] H n Hl Hs; simpl in *; try lia.
  destruct (f x y) eqn:E; [|discriminate]. destruct n as [|n]; [assumption|].
  apply IH; auto; lia.
Qed.

Lemma long_length l : forall n, long l n = (n + Z.of_nat (length l))%Z.
Proof. induction l as [|x l IH]; intros n; cbn [long length]; [lia|]. rewrite IH. lia. Qed.

Lemma nth_tl n (l : list Z) : nth n (tl l) 0%Z = nth (S n) l 0%Z.
Proof. destruct l; [now destruct n|reflexivity]. Qed.

Lemma nth_skip m : forall n (l : list Z), nth n (skipn m l) 0%Z = nth (m + n) l 0%Z.
Proof.
  induction m as [|m IH]; intros n l; [reflexivity|]. destruct l; [now destruct n|]. apply IH.
Qed.

Lemma nth_first m : forall n (l : list Z), (n < m)%nat -> nth n (firstn m l) 0%Z = nth n l 0%Z.
Proof.
  induction m as [|m IH]; intros n l Hn; [lia|]. destruct l; [now destruct n|].
  destruct n; [reflexivity|]. simpl. apply IH. lia.
Qed.

Lemma tl_length (l : list Z) : length (tl l) = (length l - 1)%nat.
Proof. destruct l; simpl; lia. Qed.

Theorem mixing_sound m h E k q P T w :
  mixing_ok a m h E = true -> chain k q P ->
  mixes k q P T (Z.to_nat (apart m)) (Q2R (overlap m)) ->
  (Z.of_nat T <= longest a)%Z -> (1 <= w <= T)%nat -> (Z.of_nat w <= window a)%Z ->
  private k q P c eps T w.
Proof.
  intros H Ch Mix HT Hw Hww. unfold mixing_ok in H. cbv zeta in H.
  repeat (let X := fresh "A" in apply andb_prop in H as [H X]).
  apply Z.ltb_lt in H, A8, A7, A6, A5. apply Z.leb_le in A9, A10, A11. apply Z.eqb_eq in A4.
  rename H into Po. pose proof hidden_facts as Hid.
  set (o := one h) in *. assert (PoR : 0 < IZR o) by (now apply IZR_lt).
  assert (Len : length E = S (Z.to_nat (others a))).
  { rewrite long_length in A4. unfold others in *. lia. }
  set (N := Z.to_nat (others a)) in *.
  assert (C1 : 1 <= exp c) by (apply exp_ge_1, c_nonneg).
  assert (exists i, Z.to_nat (apart m) = S i) as [i Ei]
    by (exists (Z.to_nat (apart m) - 1)%nat; lia).
  rewrite Ei in *.
  pose (e := fun n => value o (nth n E 0%Z)).
  assert (Cost : forall n, (0 < exp_of h (Z.of_nat n) (cost a))%Z ->
    exp c ^ n <= IZR (exp_of h (Z.of_nat n) (cost a)) / IZR o)
    by (intros n Hn; exact (exp_of_above h n Po Hn)).
  assert (V : forall x y, (0 <= x)%Z -> IZR x * IZR o <= y * IZR o * IZR o -> IZR x / IZR o <= y).
  { intros x y _ Q. apply Rmult_le_reg_r with (IZR o * IZR o); [nra|].
    replace (IZR x / IZR o * (IZR o * IZR o)) with (IZR x * IZR o) by (field; lra). lra. }
  assert (E0 : 1 <= e 0%nat).
  { pose proof (all2_spec _ _ _ A3 0%nat ltac:(simpl; lia) ltac:(lia)) as Q.
    apply Z.leb_le in Q. simpl in Q. unfold e. apply (value_le o _ _ Po) in Q.
    unfold value at 1 in Q. replace (IZR o / IZR o) with 1 in Q by (field; lra). exact Q. }
  assert (Up : forall n, (S n <= N)%nat -> e n <= e (S n)).
  { intros n Hn. pose proof (all2_spec _ _ _ A0 n) as Q. rewrite tl_length, nth_tl in Q.
    specialize (Q ltac:(lia) ltac:(lia)). apply Z.leb_le in Q. now apply value_le. }
  assert (Rise : forall d n, (n + d <= N)%nat -> e n <= e (n + d)%nat).
  { induction d as [|d IH]; intros n Hn; [rewrite Nat.add_0_r; lra|].
    apply Rle_trans with (1 := IH n ltac:(lia)). rewrite Nat.add_succ_r. apply Up. lia. }
  assert (E1 : forall n, (n <= N)%nat -> 1 <= e n).
  { intros n Hn. apply Rle_trans with (1 := E0). apply (Rise n 0%nat). assumption. }
  assert (First : forall n, (S n < S i)%nat -> (S n <= N)%nat -> exp c * e n <= e (S n)).
  { intros n H1 H2. pose proof (all2_spec _ _ _ A2 n) as Q.
    rewrite tl_length, firstn_length, nth_tl, !nth_first in Q by lia.
    specialize (Q ltac:(lia) ltac:(lia)). apply Z.leb_le, IZR_le in Q. rewrite !mult_IZR in Q.
    pose proof (Cost 1%nat A8) as Cc. rewrite pow_1 in Cc. pose proof (E1 n ltac:(lia)) as En.
    apply Rle_trans with (IZR (exp_of h (Z.of_nat 1) (cost a)) / IZR o * e n);
      [apply Rmult_le_compat_r; lra|].
    unfold e, value. apply Rmult_le_reg_r with (IZR o * IZR o); [nra|].
    match goal with |- ?l <= ?r => replace l with (IZR (exp_of h (Z.of_nat 1) (cost a))
      * IZR (nth n E 0%Z)) by (field; lra);
      replace r with (IZR (nth (S n) E 0%Z) * IZR o) by (field; lra) end. exact Q. }
  assert (Early : forall n, (n <= N)%nat -> (n < S i)%nat -> exp c ^ n <= e n).
  { induction n as [|n IH]; intros H1 H2; [simpl; assumption|].
    apply Rle_trans with (2 := First n H2 H1). simpl. apply Rmult_le_compat_l; [lra|].
    apply IH; lia. }
  assert (Qo : Q2R (overlap m) = IZR (Qnum (overlap m)) / IZR (Zpos (Qden (overlap m))))
    by reflexivity.
  assert (Pd : 0 < IZR (Zpos (Qden (overlap m)))) by (now apply IZR_lt).
  assert (O0 : 0 <= Q2R (overlap m)) by (now apply Q2R_nonneg).
  assert (O1 : Q2R (overlap m) <= 1).
  { rewrite Qo. apply Rmult_le_reg_r with (1 := Pd).
    replace (IZR (Qnum (overlap m)) / IZR (Zpos (Qden (overlap m))) * IZR (Zpos (Qden (overlap m))))
      with (IZR (Qnum (overlap m))) by (field; lra). rewrite Rmult_1_l. now apply IZR_le. }
  assert (Late : forall n, (S i + n <= N)%nat ->
    exp c ^ i * (Q2R (overlap m) + (1 - Q2R (overlap m)) * (exp c * e n)) <= e (S i + n)%nat).
  { intros n Hn. pose proof (all2_spec _ _ _ A1 n) as Q. rewrite skipn_length, nth_skip in Q.
    specialize (Q ltac:(lia) ltac:(lia)). apply Z.leb_le, IZR_le in Q.
    rewrite plus_IZR, !mult_IZR, minus_IZR in Q.
    assert (Am : apart m = Z.of_nat (S i)) by lia.
    assert (Am1 : (apart m - 1)%Z = Z.of_nat i) by lia.
    rewrite Am1 in *. rewrite Am in *.
    pose proof (Cost i A6) as C2. pose proof (Cost (S i) A7) as C3.
    pose proof (E1 n ltac:(lia)) as En.
    set (X := IZR (exp_of h (Z.of_nat i) (cost a))) in *.
    set (Y := IZR (exp_of h (Z.of_nat (S i)) (cost a))) in *.
    apply Rle_trans with (Q2R (overlap m) * (X / IZR o)
      + (1 - Q2R (overlap m)) * (Y / IZR o * e n)).
    - replace (exp c ^ i * (Q2R (overlap m) + (1 - Q2R (overlap m)) * (exp c * e n)))
        with (Q2R (overlap m) * exp c ^ i + (1 - Q2R (overlap m)) * (exp c ^ S i * e n))
        by (simpl; ring).
      apply Rplus_le_compat; (apply Rmult_le_compat_l; [lra|]); [assumption|].
      apply Rmult_le_compat_r; lra.
    - rewrite Qo. unfold e, value.
      set (num := IZR (Qnum (overlap m))) in *. set (den := IZR (Zpos (Qden (overlap m)))) in *.
      assert (P3 : 0 < den * IZR o * IZR o) by (repeat apply Rmult_lt_0_compat; assumption).
      apply Rmult_le_reg_r with (1 := P3).
      match goal with |- ?l <= ?r =>
        replace l with (num * X * IZR o + (den - num) * Y * IZR (nth n E 0%Z)) by (field; lra);
        replace r with (IZR (nth (S i + n) E 0%Z) * IZR o * den) by (field; lra) end.
      exact Q. }
  assert (Read : forall x y, (x + y <= N)%nat ->
    exp c ^ Z.to_nat (hidden a) * e x * e y <= exp eps).
  { intros x y Hxy.
    assert (R0 : exp c ^ Z.to_nat (hidden a) * e x * e (N - x)%nat <= exp eps).
    { pose proof (all2_spec _ _ _ A x) as Q. rewrite rev_append_rev, app_nil_r, rev_length in Q.
      rewrite rev_nth in Q by lia. rewrite Len in Q.
      replace (S N - S x)%nat with (N - x)%nat in Q by lia.
      specialize (Q ltac:(lia) ltac:(lia)). apply Z.leb_le in Q.
      pose proof (exp_down_le o (halvings h) (Qnum (epsilon a)) (Zpos (Qden (epsilon a))) Po
        epsilon_nonneg eq_refl) as Le.
      assert (Pos : forall n, (n <= N)%nat -> (0 < nth n E 0)%Z).
      { intros n Hn. apply (value_pos o _ Po). specialize (E1 n Hn). unfold e in E1. lra. }
      apply (product_le o Po _ (exp_of h (hidden a) (cost a)) (exp eps) Le); auto.
      - pose proof (Cost (Z.to_nat (hidden a))) as Cw. rewrite Z2Nat.id in Cw by lia.
        now apply Cw.
      - apply pow_le; lra.
      - apply Pos; lia.
      - apply Pos; lia. }
    apply Rle_trans with (2 := R0). apply Rmult_le_compat_l.
    - apply Rmult_le_pos; [apply pow_le; lra|]. pose proof (E1 x ltac:(lia)). lra.
    - replace (N - x)%nat with (y + (N - x - y))%nat by lia. apply Rise. lia. }
  pose (w0 := Nat.min (Z.to_nat (window a)) T).
  apply private_within with (T := T) (w := w0); auto; try (unfold w0; lia); [apply c_nonneg|].
  intros f Hf x y u u' HT' Lu Lu' Bu Bu'.
  assert (Nxy : (x + y <= N)%nat) by (unfold N, others, w0, hidden in *; lia).
  assert (NT : (x + y < T)%nat) by (unfold w0 in *; lia).
  destruct u as [|u1 v]; [simpl in Lu; unfold w0 in Lu; lia|].
  destruct u' as [|u1' v']; [simpl in Lu'; unfold w0 in Lu'; lia|].
  cbn [length] in Lu, Lu'.
  apply (read k q P T) with (C := exp c)
    (A := flat (fun n x => possible k q P (T - 1 - n) x) e y) (B := flat (possible k q P) e x);
    auto; try apply Ch; try lia.
  - apply (forward_flat k q P Ch T i (Q2R (overlap m)) Mix O1 (exp c) C1 e (x + y)%nat); auto;
      try lia.
    + intros n H1 H2. apply Early; lia.
    + intros n H1. apply E1. lia.
    + intros n H1. apply Late. lia.
  - apply (backward_flat k q P Ch T i (Q2R (overlap m)) Mix O1 (exp c) C1 e (x + y)%nat); auto;
      try lia.
    + intros n H1 H2. apply Early; lia.
    + intros n H1. apply E1. lia.
    + intros n H1. apply Late. lia.
  - intros B1 B2 P1 P2 _ _.
    assert (Hu : (u1 < k)%nat) by (now inversion Bu).
    assert (Hu' : (u1' < k)%nat) by (now inversion Bu').
    assert (Z1 := before_path k q P x v Ch u1 Hu ltac:(now inversion Bu) B1 P1).
    assert (Z2 := before_path k q P x v' Ch u1' Hu' ltac:(now inversion Bu') B2 P2).
    apply possible_spec in B1, B2, Z1, Z2.
    assert (T1 : (T - 1 - y)%nat = (x + length v)%nat) by lia.
    assert (T2 : (T - 1 - y)%nat = (x + length v')%nat) by lia.
    unfold flat. rewrite B1, B2. rewrite T1 at 1 3. rewrite Z1.
    rewrite T2 at 1 2. rewrite Z2. simpl andb. cbv iota.
    pose proof (E1 x ltac:(lia)). pose proof (E1 y ltac:(lia)).
    split; [lra|]. split; [lra|].
    assert (Hs : (S (length v) <= Z.to_nat (hidden a))%nat) by (unfold w0, hidden in *; lia).
    apply Rle_trans with (2 := Read y x ltac:(lia)).
    apply Rmult_le_compat_r; [lra|]. apply Rmult_le_compat_r; [lra|]. now apply Rle_pow.
Qed.
End claim.

Theorem check_sound a hs mixing_hints : check a hs mixing_hints = true -> holds a.
Proof.
  intros H T w HT Hw Hww. unfold check in H.
  repeat (let X := fresh "A" in apply andb_prop in H as [H X]). ands.
  rewrite forallb_forall in A0.
  assert (Cn : 0 <= / Q2R (scale a)) by (now apply c_nonneg).
  assert (Group : group_ok a = true -> forall k q P, chain k q P ->
    private k q P (/ Q2R (scale a)) (Q2R (epsilon a)) T w).
  { intros G k q P Ch. apply private_group; auto.
    apply Qle_bool_iff, Qle_Rle in G. rewrite Q2R_mult, Q2R_Z, cost_c in G by assumption.
    apply Rle_trans with (2 := G). apply Rmult_le_compat_r; [assumption|].
    rewrite INR_IZR_INZ. now apply IZR_le. }
  split.
  - intros m Hm phase q Hp Hq. specialize (A0 m Hm).
    assert (Ch : chain (states m) q (steps m phase)).
    { destruct Hq as (Q1 & Q2 & _). split; [assumption|]. split; [assumption|]. split.
      - intros; now apply P_nonneg.
      - intros; now apply P_sum. }
    split; [assumption|]. apply orb_prop in A as [G|G]; [now apply Group|].
    apply andb_prop in G as [G _].
    assert (exists h, (match quilts h with [] => proved a m h | _ => quilts_ok a m h end) = true)
      as [h Ph].
    { clear - Hm G. revert hs G. induction (family a) as [|m' l IH]; intros hs G; [contradiction|].
      destruct hs as [|h hs]; [discriminate|]. simpl in G. apply andb_prop in G as [G1 G2].
      destruct Hm as [->|Hm]; [now exists h|now apply IH with hs]. }
    apply private_within with (T := Z.to_nat (longest a)) (w := Z.to_nat (hidden a));
      unfold hidden; try lia; auto.
    destruct (quilts h) as [|first more] eqn:Qu;
      [|now apply (quilts_sound a H A3 A2 A1) with h].
    unfold proved in Ph. destruct (initial m) eqn:St; [destruct (period m =? 1)%nat| |];
      try now apply (chain_sound a H A3 A2 A1) with h.
    now apply (periodic_chain_sound a H A3 A2 A1) with h.
  - intros m Hm k q P Ch Mix. apply orb_prop in A as [G|G]; [now apply Group|].
    apply andb_prop in G as [_ G]. rewrite forallb_forall in G. specialize (G m Hm).
    now apply (mixing_sound a H A3 A2 A1) with (1 := G).
Qed.
