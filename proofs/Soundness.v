(* What the checker accepts is true. *)
From Coq Require Import Reals Lra Lia List Arith ZArith QArith Qreals Bool.
From Pufferflow Require Import Sums Chains Sides Reversal Segments Blocks Numbers Claims Checker
  Steps Models Overlap Quilts.
Import ListNotations.
Open Scope R_scope.

(* -- READ ------------------------------------------------------------------------------------- *)

Lemma fold_max l : forall x, In x l -> (x <= fold_right Z.max 0 l)%Z.
Proof.
  induction l as [|a l IH]; intros x H; [contradiction|]. destruct H as [->|H]; simpl; [lia|].
  specialize (IH x H). lia.
Qed.

Lemma get_in E x y : (0 < get E x y)%Z -> In (get E x y) (concat E).
Proof.
  unfold get. intros P.
  assert (Hx : (x < length E)%nat).
  { destruct (Nat.lt_ge_cases x (length E)) as [|Ge]; [assumption|].
    rewrite (nth_overflow E) in P by assumption. destruct y; simpl in P; lia. }
  assert (Hy : (y < length (nth x E []))%nat).
  { destruct (Nat.lt_ge_cases y (length (nth x E []))) as [|Ge]; [assumption|].
    rewrite nth_overflow in P by assumption. lia. }
  apply in_concat. exists (nth x E []). split; now apply nth_In.
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
    assert (MA := fold_max _ _ (get_in _ _ _ RA)). assert (MB := fold_max _ _ (get_in _ _ _ RB)).
    assert (G : l * value one (fold_right Z.max 0%Z (concat A))
      * value one (fold_right Z.max 0%Z (concat B)) <= e) by (apply product_le; auto; lia).
    apply Rle_trans with (2 := G).
    assert (forall y, (0 < y)%Z -> 0 <= value one y) as V.
    { intros y Hy. left. now apply value_pos. }
    apply Rmult_le_compat; [apply Rmult_le_pos; auto|auto| |now apply value_le].
    apply Rmult_le_compat_l; [assumption|now apply value_le].
Qed.

(* Every node is among those that are read. *)
Lemma nodes_sound w n possible ahead past i : (i <= n)%nat ->
  nodes_ok one k L w cw (Z.of_nat n) possible ahead past = true ->
  read_ok one k L w cw possible possible (at_node one k ahead (Z.of_nat (n - i)))
    (at_node one k past (Z.of_nat i)) = true.
Proof.
  intros Hi H. unfold nodes_ok in H. apply andb_prop in H as [Hb Ha].
  rewrite forallb_forall in Ha, Hb.
  set (a := length (tables one k ahead)) in *. set (b := length (tables one k past)) in *.
  destruct (Nat.le_gt_cases i b) as [Ib|Ib].
  - specialize (Hb i ltac:(apply in_seq; lia)).
    apply orb_prop in Hb as [Hb|Hb]; [ands; lia|].
    now rewrite Nat2Z.inj_sub by assumption.
  - destruct (Nat.lt_ge_cases (n - i) a) as [Ia|Ia].
    + specialize (Ha (n - i)%nat ltac:(apply in_seq; lia)).
      apply orb_prop in Ha as [Ha|Ha]; [ands; lia|].
      replace (Z.of_nat n - Z.of_nat (n - i))%Z with (Z.of_nat i) in Ha by lia.
      now replace (Z.of_nat n - Z.of_nat i)%Z with (Z.of_nat (n - i)) in Ha by lia.
    + specialize (Hb b ltac:(apply in_seq; lia)).
      apply orb_prop in Hb as [Hb|Hb]; [ands; lia|].
      assert (Far : forall s m, (length (tables one k s) <= m)%nat ->
        at_node one k s (Z.of_nat m) = rest s).
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
Variable h : hints.
Hypothesis one_pos : (0 < one h)%Z.
Variable phase : nat.
Variable q : nat -> R.
Let k := states m.
Let P := steps m phase.
Hypothesis Ch : chain k q P.

Lemma forward_enclosed T n p :
  (forall x z, (x < k)%nat -> (z < k)%nat -> P (T - 2 - n)%nat x z
    = Q2R (at_xy (matrix m p) x z)) ->
  forallb (forallb (Z.leb 0)) (low (forward_rows (one h) (matrix m p))) = true ->
  enclosed (one h) k (forward k P T) n (forward_rows (one h) (matrix m p)).
Proof.
  intros E Low. split; [now apply nonneg_table|]. intros x Hx _.
  split; [now apply forward_1|]. intros z Hz. unfold P. rewrite (forward_P m ok) by assumption.
  fold P. rewrite E by assumption. unfold real. simpl.
  rewrite !nth_table_map.
  - split; [now apply Q2R_down|now apply Q2R_up].
  - simpl. rewrite Z.mul_0_r. reflexivity.
  - simpl. rewrite Z.mul_0_r. reflexivity.
Qed.

Lemma backward_enclosed n p pi pi' s :
  0 < s ->
  (forall x, (x < k)%nat -> before k q P n x = s * IZR (weight pi x)) ->
  (forall x, (x < k)%nat -> before k q P (S n) x = s * IZR (weight pi' x)) ->
  (forall x z, (x < k)%nat -> (z < k)%nat -> P n x z = Q2R (at_xy (matrix m p) x z)) ->
  forallb (forallb (Z.leb 0)) (low (backward_rows (one h) k (matrix m p) pi pi')) = true ->
  enclosed (one h) k (backward k q P) n (backward_rows (one h) k (matrix m p) pi pi').
Proof.
  intros Hs B1 B2 E Low. split; [now apply nonneg_table|]. intros x Hx Can. simpl in Can.
  apply Z.ltb_lt in Can. assert (Px : 0 < IZR (weight pi' x)) by (now apply IZR_lt).
  assert (Po : 0 < IZR (one h)) by (now apply IZR_lt).
  split.
  - apply backward_sums_to_1; auto; try apply Ch. rewrite B2 by assumption. nra.
  - intros z Hz. unfold backward. rewrite B1, B2, E by assumption. unfold real. simpl.
    rewrite !get_seq by assumption. set (p0 := at_xy (matrix m p) z x).
    assert (Pd : 0 < IZR (Zpos (Qden p0))) by (now apply IZR_lt).
    assert (Pz : (0 < Zpos (Qden p0) * weight pi' x)%Z) by lia.
    assert (V : s * IZR (weight pi z) * Q2R p0 / (s * IZR (weight pi' x))
      = IZR (one h * (weight pi z * Qnum p0)) / IZR (Zpos (Qden p0) * weight pi' x)
        / IZR (one h)).
    { rewrite Q2R_frac, !mult_IZR. field. repeat split; lra. }
    rewrite V. unfold value. split; apply Rmult_le_compat_r;
      try (left; now apply Rinv_0_lt_compat); [now apply down_le|now apply up_ge].
Qed.
End model.

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
    bounds k (exp c) (forward k P T) j (real (one h) A) /\
    bounds k (exp c) (backward k q P) i (real (one h) B) /\
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

Theorem stationary_chain_sound m h phase q :
  model_ok m = true -> stationary_chain_ok a m h = true -> initial m = Stationary ->
  starts m phase q -> chain (states m) q (steps m phase) ->
  private (states m) q (steps m phase) c eps (Z.to_nat (longest a)) (Z.to_nat (hidden a)).
Proof.
  intros ok H St Hq Ch. unfold stationary_chain_ok in H. cbv zeta in H.
  repeat (let X := fresh "A" in apply andb_prop in H as [H X]).
  ands. rename H into Per.
  destruct Hq as (_ & _ & Q). rewrite St in Q.
  set (k := states m) in *. set (P := steps m phase) in *.
  set (pi := weights (stationary h) 0) in *.
  destruct (stationary_weights m ok phase q Ch Q (stationary h) A7 (order h) A6) as [s [Hs Eq]].
  fold k P in Eq.
  assert (Mat : forall p, matrix m p = matrix m 0).
  { intros p. unfold matrix. now rewrite Per, !Nat.mod_1_r. }
  assert (Before : forall t x, (x < k)%nat -> before k q P t x = s * IZR (weight pi x)).
  { intros t x Hx. rewrite Eq by assumption. rewrite Per, Nat.mod_1_r. reflexivity. }
  assert (PE : forall t x z, (x < k)%nat -> (z < k)%nat -> P t x z = Q2R (at_xy (matrix m 0) x z)).
  { intros t x z _ _. unfold P, steps. now rewrite Mat. }
  assert (C1 : 1 <= exp c) by (apply exp_ge_1, c_nonneg).
  assert (One : (exp c <= value (one h) (exp_of h 1 (cost a)))).
  { rewrite <- (pow_1 (exp c)). now apply (exp_of_above h 1). }
  assert (Count : forall n, (0 < exp_of h (Z.of_nat n) (cost a))%Z ->
    exp c ^ n <= value (one h) (exp_of h (Z.of_nat n) (cost a))).
  { intros n. now apply exp_of_above. }
  assert (Can : forall t y, (y < k)%nat -> 0 < before k q P t y -> (0 <? weight pi y)%Z = true).
  { intros t y Hy Pos. rewrite Before in Pos by assumption. apply Z.ltb_lt, lt_IZR.
    destruct (Rlt_le_dec 0 (IZR (weight pi y))); [assumption|nra]. }
  apply private_by_tables with h; auto.
  intros i j HT. rewrite (nodes_facts i j HT) in *.
  exists (fun x => (0 <? weight pi x)%Z), (fun x => (0 <? weight pi x)%Z),
    (at_node (one h) k (ahead h) (Z.of_nat j)), (at_node (one h) k (past h) (Z.of_nat i)).
  repeat split.
  - apply (side_bounds (one h) A8 k (exp c) C1 _ One (forward k P (Z.to_nat (longest a))))
      with (5 := A1); auto; try lia.
    + intros; now apply forward_nonneg; try apply Ch.
    + intros n _. apply forward_enclosed; auto.
    + intros n _. apply forward_enclosed; auto.
  - apply (side_bounds (one h) A8 k (exp c) C1 _ One (backward k q P)) with (5 := A0); auto;
      try lia.
    + intros; now apply backward_nonneg; try apply Ch.
    + intros n _. apply backward_enclosed with (s := s); auto.
    + intros n _. apply backward_enclosed with (s := s); auto.
  - apply Can.
  - apply Can.
  - pose proof (nodes_sound (one h) k _ _ (hidden a) (i + j) _ (ahead h) (past h) i ltac:(lia) A)
      as Rd.
    now replace (i + j - i)%nat with j in Rd by lia.
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
  - apply (cycle_bounds (one h) One0 k (exp c) C1 _ One (forward k P T)) with (3 := A1)
      (N := (i + j)%nat);
      auto; try lia.
    + intros; now apply forward_nonneg; try apply Ch.
    + intros n Hn. apply Nat.mod_upper_bound. lia.
    + intros n Hn. split.
      * unfold pf. replace (T - 1 - n)%nat with (S (T - 1 - S n)) by lia.
        rewrite <- (Nat.add_1_r (_ mod _)), Nat.add_mod_idemp_l by lia. f_equal. lia.
      * apply forward_enclosed; auto; [|apply Low, Nat.mod_upper_bound; lia].
        intros x z _ _. unfold pf. replace (T - 1 - S n)%nat with (T - 2 - n)%nat by lia. apply PE.
  - apply (cycle_bounds (one h) One0 k (exp c) C1 _ One (backward k q P)) with (3 := A0)
      (N := (i + j)%nat);
      auto; try lia.
    + intros; now apply backward_nonneg; try apply Ch.
    + intros n Hn. apply Nat.mod_upper_bound. lia.
    + intros n Hn. assert (E : ((pb (S n) + (N - 1)) mod N = pb n)%nat).
      { unfold pb. rewrite Nat.add_succ_r. apply Prev. }
      split; [exact E|].
      apply backward_enclosed with (s := s); auto.
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

Lemma no_bounds k C K n o : bounds k C K n (real o []).
Proof.
  intros x y g _ _ Pos. unfold real, value, get in Pos. exfalso.
  destruct x, y; simpl in Pos; unfold Rdiv in Pos; rewrite Rmult_0_l in Pos; lra.
Qed.

Lemma ratio_in l n rows o k : ratios_ok o k rows l = true -> ratio_of l n <> [] ->
  forallb (forallb (Z.leb 0)) (low (rows n)) = true /\
  step_ok o k (rows n) [] (ratio_of l n) 0 (repeat (repeat (Flows []) k) k) = true.
Proof.
  unfold ratios_ok, ratio_of. intros H. destruct (find _ l) as [p|] eqn:F; [|easy]. intros _.
  apply find_some in F as [In1 E]. apply Pos.eqb_eq in E. rewrite forallb_forall in H.
  specialize (H p In1). cbv zeta in H. rewrite E in H. now apply andb_prop in H.
Qed.

Lemma growth_nil o d : growth o d [] = [].
Proof. reflexivity. Qed.

Theorem quilts_sound m h l ah pa phase q :
  model_ok m = true -> quilts_ok a m h l ah pa = true -> initial m = Stationary ->
  starts m phase q -> chain (states m) q (steps m phase) ->
  private (states m) q (steps m phase) c eps (Z.to_nat (longest a)) (Z.to_nat (hidden a)).
Proof.
  intros ok H St Hq Ch. unfold quilts_ok in H. cbv zeta in H.
  repeat (let X := fresh "A" in apply andb_prop in H as [H X]).
  apply Nat.eqb_eq in H. apply Z.ltb_lt in A7, A6, A5. rename H into Per.
  destruct Hq as (_ & _ & Q). rewrite St in Q.
  set (k := states m) in *. set (P := steps m phase) in *. set (o := one h) in *.
  set (pi := weights (stationary h) 0) in *.
  destruct (stationary_weights m ok phase q Ch Q (stationary h) A4 (order h) A3) as [s [Hs Eq]].
  fold k P in Eq.
  assert (Mat : forall p, matrix m p = matrix m 0).
  { intros p. unfold matrix. now rewrite Per, !Nat.mod_1_r. }
  assert (Before : forall t x, (x < k)%nat -> before k q P t x = s * IZR (weight pi x)).
  { intros t x Hx. rewrite Eq by assumption. rewrite Per, Nat.mod_1_r. reflexivity. }
  assert (PE : forall t x z, P t x z = Q2R (at_xy (matrix m 0) x z)).
  { intros t x z. unfold P, steps. now rewrite Mat. }
  assert (Same : forall t, P t = P 0%nat).
  { intros t. unfold P, steps. now rewrite (Mat (phase + t)%nat), (Mat (phase + 0)%nat). }
  assert (C1 : 1 <= exp c) by (apply exp_ge_1, c_nonneg).
  assert (Po : 0 < IZR o) by (now apply IZR_lt).
  assert (Count : forall n, (0 < exp_of h (Z.of_nat n) (cost a))%Z ->
    exp c ^ n <= value o (exp_of h (Z.of_nat n) (cost a))).
  { intros n. now apply exp_of_above. }
  assert (One : exp c <= value o (exp_of h 1 (cost a))).
  { rewrite <- (pow_1 (exp c)). now apply (Count 1%nat). }
  assert (Can : forall t y, (y < k)%nat -> 0 < before k q P t y -> (0 <? weight pi y)%Z = true).
  { intros t y Hy Pos. rewrite Before in Pos by assumption. apply Z.ltb_lt, lt_IZR.
    destruct (Rlt_le_dec 0 (IZR (weight pi y))); [assumption|nra]. }
  assert (Len : length (matrix m 0) = k).
  { pose proof ok as O. unfold model_ok in O. apply andb_prop in O as [_ O].
    rewrite forallb_forall in O. specialize (O (matrix m 0)).
    unfold matrix_ok in O. assert (I : In (matrix m 0) (matrices m)).
    { apply nth_In. rewrite Per. unfold period in Per. rewrite Per. simpl. lia. }
    specialize (O I). apply andb_prop in O as [O _]. now apply Nat.eqb_eq in O. }
  assert (Num : forall x y, (x < k)%nat -> (0 <= Qnum (at_xy (matrix m 0) x y))%Z)
    by (intros x y Hx; now apply (row_facts m ok 0 x Hx)).
  assert (Low : forall n, under_table o k (low (rows_after o k (matrix m 0) n))
    (power k P 0 (Pos.to_nat n))).
  { intros n. apply power_under; auto. split; [simpl; now rewrite map_length|].
    intros x z Hx Hz. simpl. unfold real. rewrite nth_table_map.
    - split; [apply down_nonneg; [|reflexivity]; specialize (Num x z Hx); nia|].
      rewrite PE. now apply Q2R_down.
    - simpl. rewrite Z.mul_0_r. reflexivity. }
  assert (High : forall n, over_table o k (high (rows_after o k (matrix m 0) n))
    (power k P 0 (Pos.to_nat n))).
  { intros n. apply power_over; auto. split; [simpl; now rewrite map_length|].
    intros x z Hx Hz. simpl. unfold real. rewrite nth_table_map.
    - rewrite PE. split; [now apply Q2R_nonneg, Num|]. now apply Q2R_up.
    - simpl. rewrite Z.mul_0_r. reflexivity. }
  apply private_by_tables with h; auto.
  intros i j HT. rewrite (nodes_facts i j HT) in *. pose proof hidden_facts as Hid.
  set (T := Z.to_nat (longest a)) in *. set (w := Z.to_nat (hidden a)) in *.
  assert (Hw : (1 <= w)%nat) by (unfold w; lia).
  destruct (covering_spec _ _ _ A0 (Z.of_nat i + 1)%Z ltac:(lia))
    as (s' & In1 & R1 & R2 & R3 & Le & Ri).
  rewrite forallb_forall in A. specialize (A s' In1). cbv beta in A.
  apply andb_prop in A as [A Rd]. apply andb_prop in A as [Al Ar].
  exists (fun x => (0 <? weight pi x)%Z), (fun x => (0 <? weight pi x)%Z).
  do 2 eexists. repeat split; [| |apply Can|apply Can|exact Rd].
  - destruct (to_right s') as [n|].
    + specialize (Ri n eq_refl). apply Z.ltb_lt in Ar.
      destruct (list_eq_dec (list_eq_dec Z.eq_dec) (ratio_of ah n) []) as [E|Ne].
      { rewrite E, growth_nil. apply no_bounds. }
      destruct (ratio_in _ _ _ _ _ A2 Ne) as [Ln St1].
      assert (exists d, Pos.to_nat n = S d) as [d Ed] by (exists (Pos.to_nat n - 1)%nat; lia).
      assert (exists r, j = (S d + r)%nat) as [r Er] by (exists (j - S d)%nat; lia).
      rewrite Er. apply (block_bounds o A7 k (exp c) C1 _ One (forward k P T)) with (E := [])
        (r := rows_after o k (matrix m 0) n) (W := repeat (repeat (Flows []) k) k)
        (D := fun x z => power k P 0 (Pos.to_nat n) x z); auto.
      * intros; apply forward_nonneg; auto; apply Ch.
      * now apply nonneg_table.
      * intros x Hx _. split.
        -- intros F. rewrite Ed. rewrite <- (power_same k P (S d) Same (T - 1 - r - S d)).
           apply forward_through; auto; [lia|]. intros; now apply (forward_P m ok).
        -- intros z Hz. split; [now apply Low|now apply High].
      * replace (Z.pos n - 1)%Z with (Z.of_nat d) in * by lia. now apply Count.
      * lia.
      * apply no_bounds.
    + apply Z.ltb_lt in Ar. intros x y g Hx Hy Pos L. unfold real in *.
      rewrite get_seq in * by assumption.
      simpl andb in *. cbv iota in *.
      replace (Z.of_nat (i + j) + 1 - from s')%Z
        with (Z.of_nat (Z.to_nat (Z.of_nat (i + j) + 1 - from s'))) in * by lia.
      set (n := Z.to_nat (Z.of_nat (i + j) + 1 - from s')) in *.
      apply Rle_trans with (exp c ^ j * beyond k (forward k P T) j y g).
      * apply Sides.count; auto; try (now apply (forward_1 m ok)).
        intros; apply forward_nonneg; auto; apply Ch.
      * apply Rmult_le_compat_r; [apply beyond_nonneg; auto; [|intro; apply L];
          intros; apply forward_nonneg; auto; apply Ch|].
        apply Rle_trans with (2 := Count n Ar). apply Rle_pow; [assumption|lia].
  - destruct (to_left s') as [n|].
    + specialize (Le n eq_refl). apply Z.ltb_lt in Al.
      destruct (list_eq_dec (list_eq_dec Z.eq_dec) (ratio_of pa n) []) as [E|Ne].
      { rewrite E, growth_nil. apply no_bounds. }
      destruct (ratio_in _ _ _ _ _ A1 Ne) as [Ln St1].
      assert (exists d, Pos.to_nat n = S d) as [d Ed] by (exists (Pos.to_nat n - 1)%nat; lia).
      assert (exists r, i = (S d + r)%nat) as [r Er] by (exists (i - S d)%nat; lia).
      rewrite Er. apply (block_bounds o A7 k (exp c) C1 _ One (backward k q P)) with (E := [])
        (r := rows_before o k (matrix m 0) pi n) (W := repeat (repeat (Flows []) k) k)
        (D := fun x z => IZR (weight pi z) * power k P 0 (Pos.to_nat n) z x / IZR (weight pi x));
          auto.
      * intros; apply backward_nonneg; auto; apply Ch.
      * now apply nonneg_table.
      * intros x Hx Cx. simpl in Cx. apply Z.ltb_lt in Cx.
        assert (Px : 0 < IZR (weight pi x)) by (now apply IZR_lt). split.
        -- intros F. rewrite Ed. pose proof (backward_through k P q Ch r (S d) x F Hx) as B.
           rewrite Before in B by assumption.
           apply Rmult_eq_reg_l with (s * IZR (weight pi x)); [|nra].
           rewrite B, <- sum_scale. apply sum_ext; intros z Hz. rewrite Before by assumption.
           rewrite (power_same k P (S d) Same r). field. lra.
        -- intros z Hz. simpl. unfold real. rewrite !get_seq by assumption.
           destruct (Low n) as [_ L1]. destruct (L1 z x Hz Hx) as [_ L2].
           destruct (High n) as [_ H1]. destruct (H1 z x Hz Hx) as [_ H2].
           unfold real, value in L2, H2. simpl in L2, H2.
           assert (Pz : 0 <= IZR (weight pi z)).
           { pose proof (before_nonneg k q P (proj1 Ch) (proj1 (proj2 (proj2 Ch))) 0 z Hz) as B.
             rewrite Before in B by assumption. nra. }
           set (lo := get (power_of down o k _ n) z x) in *.
           set (hi := get (power_of up o k _ n) z x) in *.
           assert (V : forall v, IZR (weight pi z) * (IZR v / IZR o) / IZR (weight pi x)
             = IZR (weight pi z * v) / IZR (weight pi x) / IZR o)
             by (intros v; rewrite mult_IZR; field; lra).
           assert (Ip : 0 < / IZR (weight pi x)) by (now apply Rinv_0_lt_compat).
           assert (Io : 0 < / IZR o) by (now apply Rinv_0_lt_compat).
           unfold value. split.
           ++ apply Rle_trans with (IZR (weight pi z) * (IZR lo / IZR o) / IZR (weight pi x)).
              ** rewrite V. apply Rmult_le_compat_r; [lra|]. now apply down_le.
              ** unfold Rdiv. apply Rmult_le_compat_r; [lra|]. now apply Rmult_le_compat_l.
           ++ apply Rle_trans with (IZR (weight pi z) * (IZR hi / IZR o) / IZR (weight pi x)).
              ** unfold Rdiv. apply Rmult_le_compat_r; [lra|]. now apply Rmult_le_compat_l.
              ** rewrite V. apply Rmult_le_compat_r; [lra|]. now apply up_ge.
      * replace (Z.pos n - 1)%Z with (Z.of_nat d) in * by lia. now apply Count.
      * lia.
      * apply no_bounds.
    + apply Z.ltb_lt in Al. intros x y g Hx Hy Pos L. unfold real in *.
      rewrite get_seq in * by assumption.
      destruct (0 <? weight pi x)%Z eqn:Px; simpl andb in *;
        [|unfold value, Rdiv in Pos; rewrite Rmult_0_l in Pos; lra].
      destruct (0 <? weight pi y)%Z eqn:Py; cbv iota in *;
        [|unfold value, Rdiv in Pos; rewrite Rmult_0_l in Pos; lra].
      replace (upto s' - 1)%Z with (Z.of_nat (Z.to_nat (upto s' - 1))) in * by lia.
      set (n := Z.to_nat (upto s' - 1)) in *.
      assert (Mass : forall v, (v < k)%nat -> (0 <? weight pi v)%Z = true ->
        0 < before k q P i v).
      { intros v Hv Pv. rewrite Before by assumption. apply Z.ltb_lt, IZR_lt in Pv. nra. }
      apply Rle_trans with (exp c ^ i * beyond k (backward k q P) i y g).
      * apply Sides.count; auto; try (apply backward_sums_to_1; auto; apply Ch).
        intros; apply backward_nonneg; auto; apply Ch.
      * apply Rmult_le_compat_r; [apply beyond_nonneg; auto; [|intro; apply L];
          intros; apply backward_nonneg; auto; apply Ch|].
        apply Rle_trans with (2 := Count n Al). apply Rle_pow; [assumption|lia].
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
    assert (exists h, (match quilts h with [] => proved a m h | _ => with_quilts a m h end) = true)
      as [h Ph].
    { clear - Hm G. revert hs G. induction (family a) as [|m' l IH]; intros hs G; [contradiction|].
      destruct hs as [|h hs]; [discriminate|]. simpl in G. apply andb_prop in G as [G1 G2].
      destruct Hm as [->|Hm]; [now exists h|now apply IH with hs]. }
    apply private_within with (T := Z.to_nat (longest a)) (w := Z.to_nat (hidden a));
      unfold hidden; try lia; auto.
    destruct (quilts h) as [|first more] eqn:Qu.
    2: { unfold with_quilts in Ph. destruct (initial m) eqn:St; try discriminate.
         now apply (quilts_sound a H A3 A2 A1 m h) with (2 := Ph). }
    unfold proved in Ph. destruct (initial m) eqn:St; try discriminate.
    destruct (period m =? 1)%nat.
    + now apply (stationary_chain_sound a H A3 A2 A1) with h.
    + now apply (periodic_chain_sound a H A3 A2 A1) with h.
  - intros m Hm k q P Ch Mix. apply orb_prop in A as [G|G]; [now apply Group|].
    apply andb_prop in G as [_ G]. rewrite forallb_forall in G. specialize (G m Hm).
    now apply (mixing_sound a H A3 A2 A1) with (1 := G).
Qed.
