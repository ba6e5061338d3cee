(* The rules COUNT, STEP and CLOSE of the checker are sound. *)
From Coq Require Import Reals Lra Lia List Arith ZArith QArith Qreals Bool.
From Pufferflow Require Import Sums Sides Blocks Mixtures Numbers Claims Checker.
Import ListNotations.
Open Scope Z_scope.

Lemma every_spec k f : every k f = true <-> forall x, (x < k)%nat -> f x = true.
Proof.
  unfold every. rewrite forallb_forall. split; intros H x Hx.
  - apply H, in_seq. lia.
  - apply H. apply in_seq in Hx. lia.
Qed.

Ltac ands := repeat match goal with
  | H : _ && _ = true |- _ => apply andb_prop in H; destruct H
  | H : (_ <? _) = true |- _ => apply Z.ltb_lt in H
  | H : (_ <=? _) = true |- _ => apply Z.leb_le in H
  | H : (_ =? _) = true |- _ => apply Z.eqb_eq in H
  | H : (_ <? _)%nat = true |- _ => apply Nat.ltb_lt in H
  | H : (_ <=? _)%nat = true |- _ => apply Nat.leb_le in H
  | H : (_ =? _)%nat = true |- _ => apply Nat.eqb_eq in H
  | H : every _ _ = true |- _ => rewrite every_spec in H
  end.

Lemma get_map f (E : table) x y : f 0 = 0 -> get (map (map f) E) x y = f (get E x y).
Proof.
  intros H. unfold get. change [] with (map f []) at 1. rewrite map_nth.
  rewrite <- H at 1. apply map_nth.
Qed.

Lemma shaped_get k E x y : shaped k E = true -> 0 < get E x y -> (x < k)%nat /\ (y < k)%nat.
Proof.
  unfold shaped, get; intros H P; ands.
  assert (Hx : (x < length E)%nat).
  { destruct (Nat.lt_ge_cases x (length E)) as [|Ge]; [assumption|].
    rewrite (nth_overflow E) in P by assumption. destruct y; simpl in P; lia. }
  split; [lia|]. rewrite forallb_forall in H0. specialize (H0 (nth x E []) (nth_In _ _ Hx)). ands.
  destruct (Nat.lt_ge_cases y (length (nth x E []))) as [|Ge]; [lia|].
  rewrite nth_overflow in P by assumption. lia.
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

Lemma ones_get d k x y : (x < k)%nat -> (y < k)%nat -> get (repeat (repeat d k) k) x y = d.
Proof.
  intros Hx Hy. unfold get. rewrite nth_indep with (d' := repeat d k)
    by (rewrite repeat_length; lia). rewrite nth_repeat.
  rewrite nth_indep with (d' := d) by (rewrite repeat_length; lia). apply nth_repeat.
Qed.

Section steps.
Variable one : Z.
Hypothesis one_pos : 0 < one.

Definition real (E : table) (x y : nat) : R := value one (get E x y).

Lemma one_R : (0 < IZR one)%R.
Proof. now apply IZR_lt. Qed.

Lemma real_pos E x y : (0 < real E x y)%R <-> 0 < get E x y.
Proof. unfold real. now apply value_pos. Qed.

Section flows.
Variable k : nat.
Variable w : nat -> R.
Variable next : nat -> bool.
Variable G : table.
Variable h : nat -> R.
Hypothesis h_growing : growing k w (real G) h.
Hypothesis h_zero : forall z, (z < k)%nat -> ~ (0 < w z)%R -> h z = 0%R.
Hypothesis next_spec : forall y, (y < k)%nat -> next y = true -> (0 < w y)%R.
Hypothesis G_shaped : shaped k G = true.

Let h0 (i : nat) : R := if (i <? k)%nat then h i else 0%R.

Lemma h0_nonneg i : (0 <= h0 i)%R.
Proof. unfold h0. destruct (Nat.ltb_spec i k); [now apply h_growing|lra]. Qed.

Lemma h0_eq i : (i < k)%nat -> h0 i = h i.
Proof. intros H. unfold h0. apply Nat.ltb_lt in H. now rewrite H. Qed.

(* Lemma 3: a flow g from z to y takes g h(z) away and adds g e^w h(y), which is no less. *)
Lemma move_dot arcs : forall net net', move one next G arcs net = Some net' ->
  (dot net h0 <= dot net' h0)%R.
Proof.
  induction arcs as [|[[z y] g] arcs IH]; intros net net' H; simpl in H.
  - injection H as <-. lra.
  - destruct (_ && _) eqn:Q in H; [|discriminate]. ands.
    apply Rle_trans with (2 := IH _ _ H). rewrite !dot_add, opp_IZR, !mult_IZR.
    destruct (shaped_get _ _ _ _ G_shaped H2) as [Hz Hy].
    rewrite !h0_eq by assumption.
    pose proof one_R as Po. assert (Pg : (0 <= IZR g)%R) by (now apply IZR_le).
    assert (A : (h z * IZR one <= IZR (get G z y) * h y)%R).
    { destruct (Rlt_dec 0 (w z)) as [Wz|Nz].
      - assert (A := proj2 h_growing z y Hz Hy Wz (next_spec y Hy H1) (proj2 (real_pos G z y) H2)).
        unfold real, value in A. apply (Rmult_le_compat_r (IZR one)) in A; [|lra].
        now replace (IZR (get G z y) / IZR one * h y * IZR one)%R with (IZR (get G z y) * h y)%R in
          A
          by (field; lra).
      - rewrite (h_zero z Hz Nz), Rmult_0_l.
        apply Rmult_le_pos; [apply IZR_le; lia|now apply h_growing]. }
    pose proof (Rmult_le_compat_l _ _ _ Pg A). lra.
Qed.

Lemma dot_h0 l : dot l h0 = sum k (fun i => IZR (nth i l 0%Z) * h i)%R.
Proof.
  rewrite (dot_sum l (k + length l)) by lia.
  assert (A : forall n, sum (k + n) (fun i => IZR (nth i l 0%Z) * h0 i)%R
    = sum k (fun i => IZR (nth i l 0%Z) * h i)%R).
  { induction n as [|n IH].
    - rewrite Nat.add_0_r. apply sum_ext; intros i Hi. now rewrite h0_eq.
    - rewrite Nat.add_succ_r. simpl. rewrite IH.
      unfold h0. destruct (Nat.ltb_spec (k + n) k); [lia|ring]. }
  apply A.
Qed.

Lemma flows_bound high low arcs net e p q :
  move one next G arcs (map (Z.mul one) high) = Some net -> under net low e = true -> 0 <= e ->
  Forall (fun b => 0 <= b) low ->
  (forall z, (z < k)%nat -> (p z <= value one (nth z high 0%Z))%R) ->
  (forall z, (z < k)%nat -> (value one (nth z low 0%Z) <= q z)%R) ->
  (sum k (fun z => p z * h z) <= value one e * sum k (fun z => q z * h z))%R.
Proof.
  intros M U He Low Hp Hq. pose proof one_R as Po. pose proof (proj1 h_growing) as Hh.
  apply move_dot in M. rewrite dot_scale in M.
  pose proof (under_dot _ _ _ _ U He Low h0_nonneg) as D.
  rewrite !dot_h0 in *.
  assert (V : forall l, (sum k (fun z => value one (nth z l 0%Z) * h z)
    = / IZR one * sum k (fun z => IZR (nth z l 0%Z) * h z))%R).
  { intros l. rewrite <- sum_scale. apply sum_ext; intros z Hz. unfold value, Rdiv. ring. }
  assert (A : (sum k (fun z => p z * h z)
    <= / IZR one * sum k (fun z => IZR (nth z high 0%Z) * h z))%R).
  { rewrite <- V. apply sum_le; intros z Hz. apply Rmult_le_compat_r; auto. }
  assert (B : (/ IZR one * sum k (fun z => IZR (nth z low 0%Z) * h z)
    <= sum k (fun z => q z * h z))%R).
  { rewrite <- V. apply sum_le; intros z Hz. apply Rmult_le_compat_r; auto. }
  apply Rle_trans with (1 := A). unfold value, Rdiv.
  apply Rmult_le_reg_l with (IZR one * IZR one)%R; [nra|].
  assert (E0 : (0 <= IZR e)%R) by (now apply IZR_le).
  apply (Rmult_le_compat_l (IZR e)) in B; [|assumption].
  replace (IZR one * IZR one * (/ IZR one * sum k (fun z => IZR (nth z high 0%Z) * h z)))%R
    with (IZR one * sum k (fun z => IZR (nth z high 0%Z) * h z))%R by (field; lra).
  apply Rle_trans with (IZR e * sum k (fun z => IZR (nth z low 0%Z) * h z))%R; [lra|].
  replace (IZR one * IZR one * (IZR e * / IZR one * sum k (fun z => q z * h z)))%R
    with (IZR one * (IZR e * sum k (fun z => q z * h z)))%R by (field; lra).
  apply (Rmult_le_compat_l (IZR one)) in B; [|lra].
  replace (IZR one * (IZR e * (/ IZR one * sum k (fun z => IZR (nth z low 0%Z) * h z))))%R
    with (IZR e * sum k (fun z => IZR (nth z low 0%Z) * h z))%R in B by (field; lra). exact B.
Qed.
End flows.

Section side.
Variable k : nat.
Variable C : R.
Hypothesis C1 : (1 <= C)%R.
Variable c : Z.
Hypothesis c_above : (C <= value one c)%R.

Lemma growth_get E x y : get (growth one c E) x y = up (c * get E x y) one.
Proof.
  unfold growth. apply (get_map (fun e => up (c * e) one)).
  rewrite Z.mul_0_r. unfold up. now rewrite Z.div_0_l by lia.
Qed.

Lemma growth_shaped E : shaped k E = true -> shaped k (growth one c E) = true.
Proof.
  unfold shaped, growth. rewrite map_length. intros H; ands. apply andb_true_intro; split;
    [now apply Nat.leb_le|].
  rewrite forallb_forall in *. intros row Hr. apply in_map_iff in Hr. destruct Hr as [r [<- Hr]].
  rewrite map_length. auto.
Qed.

Lemma growth_growing w E h :
  growing k w (fun z y => C * real E z y)%R h -> growing k w (real (growth one c E)) h.
Proof.
  intros [P H]; split; [assumption|]. intros z y Hz Hy Wz Wy Pos.
  pose proof one_R as Po.
  assert (Pe : 0 < get E z y).
  { apply real_pos in Pos. rewrite growth_get in Pos. unfold up in Pos.
    destruct (Z.lt_ge_cases 0 (get E z y)) as [|Ge]; [assumption|exfalso].
    assert (0 <= c) by (apply le_IZR; unfold value in c_above;
      apply Rmult_le_reg_r with (/ IZR one)%R; [now apply Rinv_0_lt_compat|]; lra).
    assert (0 <= - (c * get E z y) / one) by (apply Z.div_pos; nia). lia. }
  apply Rle_trans with (1 := H z y Hz Hy Wz Wy
    ltac:(apply Rmult_lt_0_compat; [lra|now apply real_pos])).
  apply Rmult_le_compat_r; [auto|].
  unfold real. rewrite growth_get. unfold value.
  assert (E0 : (0 < IZR (get E z y))%R) by (now apply IZR_lt).
  pose proof (up_ge (c * get E z y) one one_pos) as U. rewrite mult_IZR in U.
  unfold value in c_above.
  apply Rmult_le_reg_r with (IZR one); [assumption|].
  replace (IZR (up (c * get E z y) one) / IZR one * IZR one)%R
    with (IZR (up (c * get E z y) one)) by (field; lra).
  replace (C * (IZR (get E z y) / IZR one) * IZR one)%R with (C * IZR (get E z y))%R
    by (field; lra).
  apply Rle_trans with (2 := U).
  replace (IZR c * IZR (get E z y) / IZR one)%R with (IZR c / IZR one * IZR (get E z y))%R
    by (field; lra).
  now apply Rmult_le_compat_r; [lra|].
Qed.

Variable K : nat -> nat -> nat -> R.
Hypothesis K_nonneg : forall n x z, (x < k)%nat -> (z < k)%nat -> (0 <= K n x z)%R.

Variable mass : nat -> nat -> R.

(* From a node with n' nodes on this side one sees those with n and less through known
   distributions p, up to a factor. *)
Definition seen (n n' : nat) (E : table) (r : rows) :=
  forall g, bounds k C K mass n (real E) -> lipschitz C g -> exists h p,
  growing k (mass n) (fun z y => C * real E z y)%R h /\
  (forall z, (z < k)%nat -> ~ (0 < mass n z)%R -> h z = 0%R) /\
  (forall x z, (x < k)%nat -> known r x = true -> (0 < mass n' x)%R -> (z < k)%nat ->
   real (low r) x z <= p x z <= real (high r) x z)%R /\
  (forall x y e, (x < k)%nat -> (y < k)%nat -> known r x = true -> known r y = true ->
   (0 < mass n' x -> 0 < mass n' y -> 0 <= e ->
    sum k (fun z => p x z * h z) <= e * sum k (fun z => p y z * h z) ->
    beyond k K n' x g <= value one (slack r) * e * beyond k K n' y g)%R).

(* Or through any multiples of weights A, mu being the factors, unless nothing is seen. *)
Definition mixes_at (n' : nat) (H : table) (far : Z) (m : mixed) :=
  forall g, lipschitz C g ->
  (forall x y, (x < k)%nat -> (y < k)%nat -> 0 < mass n' x -> 0 < mass n' y ->
   beyond k K n' x g <= value one far * beyond k K n' y g)%R \/
  exists h mu A,
  growing k mu (fun z y => C * real H z y)%R h /\
  (forall z, (z < k)%nat -> (0 <= mu z)%R) /\
  (forall z, (z < k)%nat -> (0 < mu z)%R -> may m z = true) /\
  (forall x z, (x < k)%nat -> (z < k)%nat -> 0 <= root_up m x z /\ 0 <= root_down m x z /\
   (0 <= A x z)%R /\ (value one (root_down m x z) * value one (root_down m x z) <= A x z)%R /\
   (A x z <= value one (root_up m x z) * value one (root_up m x z))%R) /\
  (forall x, (x < k)%nat -> (0 < mass n' x -> mass n' x = sum k (fun z => mu z * A x z) /\
   mass n' x * beyond k K n' x g <= sum k (fun z => mu z * (A x z * h z)) /\
   sum k (fun z => mu z * (A x z * h z)) <= value one far * (mass n' x * beyond k K n' x g))%R).

(* Distributions between bounds. *)
Lemma seen_exact n E r :
  slack r = one -> (forall x z, (x < k)%nat -> (z < k)%nat -> ~ (0 < mass n z)%R ->
    K n x z = 0%R) ->
  (forall x z, (x < k)%nat -> known r x = true -> (0 < mass (S n) x)%R -> (z < k)%nat ->
   real (low r) x z <= K n x z <= real (high r) x z)%R -> seen n (S n) E r.
Proof.
  intros One Zero En g B Lg. destruct (step_growing k C C1 K K_nonneg mass n _ g B Lg) as [Gp Gr].
  pose (h := fun z => if Rlt_dec 0 (mass n z) then beyond k K n z (fun r => g (z :: r)) else 0%R).
  assert (Eq : forall x, (x < k)%nat -> beyond k K (S n) x g = sum k (fun z => K n x z * h z)%R).
  { intros x Hx. simpl. apply sum_ext; intros z Hz. unfold h.
    destruct (Rlt_dec 0 (mass n z)); [reflexivity|]. rewrite Zero by assumption. ring. }
  exists h, (K n). split; [split|split; [|split; [assumption|]]].
  - intros z Hz. unfold h. destruct (Rlt_dec 0 (mass n z)); [auto|lra].
  - intros z y Hz Hy Mz My Pos. unfold h. destruct (Rlt_dec 0 (mass n z)); [|lra].
    destruct (Rlt_dec 0 (mass n y)); [auto|lra].
  - intros z Hz N. unfold h. destruct (Rlt_dec 0 (mass n z)); [contradiction|reflexivity].
  - intros x y e Hx Hy _ _ _ _ He Le. rewrite !Eq, One by assumption. pose proof one_R.
    unfold value.
    replace (IZR one / IZR one)%R with 1%R by (field; lra). lra.
Qed.

Lemma heights_spec G S u v : heights_ok one k G S = true -> (u < k)%nat -> (v < k)%nat ->
  0 < get S u v -> 0 < get G u v /\ get G u v * one <= get S u v * get S u v.
Proof.
  unfold heights_ok. intros H Hu Hv P.
  destruct S as [|row S]; [unfold get in P; destruct u, v; simpl in P; lia|].
  cbv zeta in H. ands. specialize (H u Hu). ands. specialize (H v Hv).
  apply orb_prop in H as [H|H]; ands; lia.
Qed.

Lemma mixed_bounds G S e m A mu h x y :
  mixed_ok one k m S e x y = true -> heights_ok one k G S = true -> (x < k)%nat -> (y < k)%nat ->
  growing k mu (real G) h -> (forall z, (z < k)%nat -> (0 <= mu z)%R) ->
  (forall z, (z < k)%nat -> (0 < mu z)%R -> may m z = true) ->
  (forall x z, (x < k)%nat -> (z < k)%nat -> 0 <= root_up m x z /\ 0 <= root_down m x z /\
   (0 <= A x z)%R /\ (value one (root_down m x z) * value one (root_down m x z) <= A x z)%R /\
   (A x z <= value one (root_up m x z) * value one (root_up m x z))%R) ->
  (sum k (fun z => mu z * (A x z * h z)) * sum k (fun z => mu z * A y z)
   <= value one e * (sum k (fun z => mu z * (A y z * h z)) * sum k (fun z => mu z * A x z)))%R.
Proof.
  intros M Hs Hx Hy [Hh Gr] Mu May Ro. unfold mixed_ok in M. apply andb_prop in M as [One M].
  apply Z.leb_le in One. ands. pose proof one_R as Po.
  assert (E1 : (1 <= value one e)%R).
  { apply (value_le one _ _ one_pos) in One. unfold value at 1 in One.
    replace (IZR one / IZR one)%R with 1%R in One by (field; lra). exact One. }
  assert (D : forall u v, (u < k)%nat -> (v < k)%nat -> (0 < mu u)%R -> (0 < mu v)%R ->
    (A x v * A y u <= A x u * A y v)%R -> forall m1 n1, (0 <= m1)%R -> (0 <= n1)%R ->
    ((m1 * (A x u * h u) + n1 * (A x v * h v)) * (m1 * A y u + n1 * A y v)
     <= value one e * ((m1 * (A y u * h u) + n1 * (A y v * h v)) * (m1 * A x u + n1 * A x v)))%R).
  { intros u v Hu Hv Pu Pv R m1 n1 M1 N1.
    destruct (Ro x u Hx Hu) as (I1 & _ & R1 & _ & T1).
      destruct (Ro y v Hy Hv) as (I2 & _ & R2 & _ & T2).
    destruct (Ro y u Hy Hu) as (_ & I3 & R3 & T3 & _).
      destruct (Ro x v Hx Hv) as (_ & I4 & R4 & T4 & _).
    specialize (M u Hu). rewrite (May u Hu Pu) in M. simpl in M. ands. specialize (M v Hv).
    rewrite (May v Hv Pv) in M. cbv zeta in M. simpl negb in M. cbn [orb] in M.
    set (p := root_up m x u * root_up m y v) in *.
      set (q := root_down m y u * root_down m x v) in *.
    set (s := get S u v) in *.
    assert (V0 : forall z, 0 <= z -> (0 <= value one z)%R).
    { intros z Hz. apply Rmult_le_pos; [now apply IZR_le|left; now apply Rinv_0_lt_compat]. }
    pose (ra := value one (root_up m x u)). pose (rb := value one (root_up m y v)).
    pose (rc := value one (root_down m y u)). pose (rd := value one (root_down m x v)).
    assert (Ep : (ra * rb = IZR p / (IZR one * IZR one))%R)
      by (unfold ra, rb, value, p; rewrite mult_IZR; field; lra).
    assert (Eq : (rc * rd = IZR q / (IZR one * IZR one))%R)
      by (unfold rc, rd, value, q; rewrite mult_IZR; field; lra).
    assert (Pa := V0 _ I1). assert (Pb := V0 _ I2). assert (Pc := V0 _ I3). assert (Pd := V0 _ I4).
    fold ra rb rc rd in Pa, Pb, Pc, Pd, T1, T2, T3, T4.
    apply two_ordered with (P := (ra * rb)%R) (Q := (rc * rd)%R) (s := value one s); auto.
    - now apply Rmult_le_pos.
    - now apply Rmult_le_pos.
    - replace (ra * rb * (ra * rb))%R with (ra * ra * (rb * rb))%R by ring.
      apply Rmult_le_compat; assumption.
    - replace (rc * rd * (rc * rd))%R with (rd * rd * (rc * rc))%R by ring.
      apply Rmult_le_compat; auto; nra.
    - rewrite Ep, Eq. assert (I : (0 < / (IZR one * IZR one))%R) by (apply Rinv_0_lt_compat; nra).
      apply orb_prop in M as [M|M]; [apply orb_prop in M as [M|M]|];
        [|apply andb_prop in M as [Ms M]; apply Z.ltb_lt in Ms..]; apply Z.leb_le in M.
      + left. apply Rmult_le_compat_r; [lra|now apply IZR_le].
      + right; left. split; [now apply value_pos|]. split.
        * destruct (heights_spec G S u v Hs Hu Hv Ms) as [G0 Gs]. fold s in Gs.
          apply Rle_trans with (1 := Gr u v Hu Hv Pu Pv (proj2 (real_pos G u v) G0)).
          apply Rmult_le_compat_r; [auto|]. unfold real, value. apply IZR_le in Gs.
          rewrite !mult_IZR in Gs. apply Rmult_le_reg_r with (IZR one * IZR one)%R; [nra|].
          replace (IZR (get G u v) / IZR one * (IZR one * IZR one))%R
            with (IZR (get G u v) * IZR one)%R by (field; lra).
          replace (IZR s / IZR one * (IZR s / IZR one) * (IZR one * IZR one))%R
            with (IZR s * IZR s)%R by (field; lra). exact Gs.
        * apply IZR_le in M. rewrite !mult_IZR, !plus_IZR, !mult_IZR in M. unfold value.
          apply Rmult_le_reg_r with (IZR one * (IZR one * IZR one * IZR one)
            * (IZR one * IZR one * IZR one))%R; [repeat apply Rmult_lt_0_compat; lra|].
          match goal with |- (?l <= ?r)%R =>
            replace l with ((IZR q * IZR one + IZR s * IZR p) * (IZR q * IZR one + IZR s * IZR p)
              * IZR one)%R by (field; lra);
            replace r with (IZR e * ((IZR s * IZR q + IZR p * IZR one)
              * (IZR s * IZR q + IZR p * IZR one)))%R by (field; lra) end. exact M.
      + right; right. apply IZR_le in M. rewrite !mult_IZR in M. unfold value.
        apply Rmult_le_reg_r with (IZR one * (IZR one * IZR one) * (IZR one * IZR one))%R;
          [repeat apply Rmult_lt_0_compat; lra|].
        match goal with |- (?l <= ?r)%R =>
          replace l with (IZR p * IZR p * IZR one)%R by (field; lra);
          replace r with (IZR e * (IZR q * IZR q))%R by (field; lra) end. exact M. }
  pose (a := fun z => if Rlt_dec 0 (mu z) then A x z else 0%R).
  pose (b := fun z => if Rlt_dec 0 (mu z) then A y z else 0%R).
  assert (T : forall B F : nat -> R, sum k (fun z => mu z * (B z * F z))%R
    = sum k (fun z => mu z * ((if Rlt_dec 0 (mu z) then B z else 0) * F z))%R).
  { intros B F. apply sum_ext; intros z Hz. destruct (Rlt_dec 0 (mu z)); [reflexivity|].
    specialize (Mu z Hz). assert (mu z = 0%R) as -> by lra. ring. }
  assert (T1 : forall B : nat -> R, sum k (fun z => mu z * B z)%R
    = sum k (fun z => mu z * (if Rlt_dec 0 (mu z) then B z else 0))%R).
  { intros B. apply sum_ext; intros z Hz. destruct (Rlt_dec 0 (mu z)); [reflexivity|].
    specialize (Mu z Hz). assert (mu z = 0%R) as -> by lra. ring. }
  rewrite (T (A x) h), (T (A y) h), (T1 (A x)), (T1 (A y)). fold a b.
  apply (mixtures k a b h (value one e)); auto; try lra.
  - intros z Hz. unfold a. destruct (Rlt_dec 0 (mu z)); [now apply Ro|lra].
  - intros z Hz. unfold b. destruct (Rlt_dec 0 (mu z)); [now apply Ro|lra].
  - assert (E0 : forall u : R, (0 <= u)%R -> (u <= value one e * u)%R) by (intros; nra).
    intros u v m1 n1 Hu Hv M1 N1. unfold a, b.
    assert (Au := proj1 (proj2 (proj2 (Ro x u Hx Hu)))).
      assert (Bu := proj1 (proj2 (proj2 (Ro y u Hy Hu)))).
    assert (Av := proj1 (proj2 (proj2 (Ro x v Hx Hv)))).
      assert (Bv := proj1 (proj2 (proj2 (Ro y v Hy Hv)))).
    assert (Hhu := Hh u Hu). assert (Hhv := Hh v Hv).
    destruct (Rlt_dec 0 (mu u)) as [Pu|], (Rlt_dec 0 (mu v)) as [Pv|].
    + destruct (Rle_dec (A x v * A y u) (A x u * A y v)) as [Le|Gt]; [now apply D|].
      assert (Sw := D v u Hv Hu Pv Pu ltac:(lra) n1 m1 N1 M1). lra.
    + assert (Q : (0 <= m1 * (A x u * h u) * (m1 * A y u))%R)
        by (repeat apply Rmult_le_pos; assumption). specialize (E0 _ Q). lra.
    + assert (Q : (0 <= n1 * (A x v * h v) * (n1 * A y v))%R)
        by (repeat apply Rmult_le_pos; assumption). specialize (E0 _ Q). lra.
    + lra.
Qed.

Theorem step_bounds n n' r m E H far count s :
  Forall (Forall (fun b => 0 <= b)) (low r) ->
  (forall y, (y < k)%nat -> next r y = true -> (0 < mass n y)%R) ->
  (forall x, (x < k)%nat -> (0 < mass n' x)%R -> sums_to_1 k K n' x) ->
  seen n n' E r -> shaped k E = true -> bounds k C K mass n (real E) ->
  match m with Some m => 0 < far -> mixes_at n' H far m | None => True end ->
  (0 < count -> (C ^ n' <= value one count)%R) ->
  step_ok one k r m (growth one c E) (growth one c H) far count s = true ->
  bounds k C K mass n' (real (bound s)).
Proof.
  intros Low Next Sums See Sh B Mix Hc St x y g Hx Hy Mx My Pos Lg.
  unfold step_ok in St. apply andb_prop in St as [Hs St]. ands.
  specialize (St x Hx). ands. specialize (St y Hy). cbv zeta in St. unfold real in Pos |- *.
  set (e := get (bound s) x y) in *. apply value_pos in Pos; [|assumption].
  assert (Pg : (0 <= beyond k K n' y g)%R) by (apply beyond_nonneg; auto; intro; apply Lg).
  pose proof one_R as Po. assert (V0 : (0 <= value one e)%R) by (left; now apply value_pos).
  assert (Down : forall f u, 0 < f -> u = down (e * one) f ->
    (value one f * value one u <= value one e)%R).
  { intros f u Pf ->. pose proof (down_le (e * one) f Pf) as Q. rewrite mult_IZR in Q.
    apply IZR_lt in Pf. unfold value. apply Rmult_le_reg_r with (IZR one * IZR one / IZR f)%R.
    - apply Rdiv_lt_0_compat; nra.
    - match goal with |- (?l <= ?r)%R =>
        replace l with (IZR (down (e * one) f)) by (field; lra);
        replace r with (IZR e * IZR one / IZR f)%R by (field; lra) end. exact Q. }
  apply orb_prop in St as [St|St]; [apply orb_prop in St as [St|St]|]; [ands; lia| |].
  - ands. subst y. apply (value_le one _ _ one_pos) in H1. unfold value at 1 in H1.
    replace (IZR one / IZR one)%R with 1%R in H1 by (field; lra). nra.
  - unfold pair_ok in St. destruct (nth y (nth x (proofs s) []) Count) as [|arcs|].
    + ands. apply Rle_trans with (1 := Sides.count k C C1 K K_nonneg n' x y g Hx Hy
        (Sums x Hx Mx) (Sums y Hy My) Lg).
      apply Rmult_le_compat_r; [assumption|]. apply Rle_trans with (1 := Hc H0).
      now apply value_le.
    + apply andb_prop in St as [St D]. ands.
      destruct (move _ _ _ _ _) as [net|] eqn:M; [|discriminate].
      destruct (See g B Lg) as (h & p & Gr & Zero & En & Fin).
      set (e' := down (e * one) (slack r)) in *.
      assert (E' : 0 <= e') by (apply down_nonneg; nia).
      assert (Fl : (sum k (fun z => p x z * h z) <= value one e' * sum k (fun z => p y z * h z))%R).
      { apply (flows_bound k (mass n) (next r) (growth one c E) h) with
          (1 := growth_growing _ E h Gr) (5 := M) (6 := D); auto.
        - now apply growth_shaped.
        - destruct (Nat.lt_ge_cases y (length (low r))) as [Ly|Ge].
          + rewrite Forall_forall in Low. apply Low. now apply nth_In.
          + rewrite nth_overflow by assumption. constructor.
        - intros z Hz. now apply En.
        - intros z Hz. now apply En. }
      assert (V' : (0 <= value one e')%R).
      { apply Rmult_le_pos; [now apply IZR_le|left; now apply Rinv_0_lt_compat]. }
      apply Rle_trans with (1 := Fin x y _ Hx Hy H0 H2 Mx My V' Fl).
      apply Rmult_le_compat_r; [assumption|]. now apply Down.
    + destruct m as [m|]; [|discriminate]. ands. specialize (Mix H0 g Lg).
      assert (V1 : (1 <= value one (down (e * one) far))%R).
      { unfold mixed_ok in H1. apply andb_prop in H1 as [H1 _]. apply Z.leb_le in H1.
        apply (value_le one _ _ one_pos) in H1. unfold value at 1 in H1.
        now replace (IZR one / IZR one)%R with 1%R in H1 by (field; lra). }
      assert (Vf : (0 < value one far)%R) by (now apply value_pos).
      pose proof (Down far _ H0 eq_refl) as De.
      destruct Mix as [Mix|(h & mu & A & Gr & Mu & May & Ro & Eq)].
      * apply Rle_trans with (1 := Mix x y Hx Hy Mx My). apply Rmult_le_compat_r; [assumption|].
        nra.
      * pose proof (mixed_bounds _ _ _ m A mu h x y H1 Hs Hx Hy (growth_growing mu H h Gr) Mu May
        Ro)
          as Mb.
        destruct (Eq x Hx Mx) as (X1 & X2 & _). destruct (Eq y Hy My) as (Y1 & _ & Y3).
        rewrite <- X1, <- Y1 in Mb.
        set (e' := value one (down (e * one) far)) in *.
        apply Rmult_le_reg_l with (mass n' x * mass n' y)%R; [now apply Rmult_lt_0_compat|].
        apply Rle_trans with (e' * (value one far * (mass n' y * beyond k K n' y g) * mass n' x))%R.
        -- apply Rle_trans with (sum k (fun z => mu z * (A x z * h z)) * mass n' y)%R.
           ++ replace (mass n' x * mass n' y * beyond k K n' x g)%R
                with (mass n' x * beyond k K n' x g * mass n' y)%R by ring.
              apply Rmult_le_compat_r; lra.
           ++ apply Rle_trans with (1 := Mb). apply Rmult_le_compat_l; [lra|].
              apply Rmult_le_compat_r; lra.
        -- replace (e' * (value one far * (mass n' y * beyond k K n' y g) * mass n' x))%R
             with (value one far * e' * (mass n' x * mass n' y * beyond k K n' y g))%R by ring.
           replace (mass n' x * mass n' y * (value one e * beyond k K n' y g))%R
             with (value one e * (mass n' x * mass n' y * beyond k K n' y g))%R by ring.
           apply Rmult_le_compat_r; [|assumption]. repeat apply Rmult_le_pos; lra.
Qed.

Lemma within_spec E F : within k E F = true -> forall x y, (x < k)%nat -> (y < k)%nat ->
  (0 < real F x y)%R -> (0 < real E x y <= real F x y)%R.
Proof.
  unfold within. intros H x y Hx Hy P. ands. specialize (H x Hx). ands. specialize (H y Hy).
  apply real_pos in P. apply orb_prop in H. destruct H as [H|H]; ands; [lia|].
  split; [now apply real_pos|now apply value_le].
Qed.

Lemma ones_bounds : bounds k C K mass 0 (real (ones one k)).
Proof.
  intros x y g Hx Hy _ _ P L. unfold real, ones. rewrite ones_get by assumption. simpl.
    unfold value.
  pose proof one_R. right. field. lra.
Qed.

Lemma ones_shaped : shaped k (ones one k) = true.
Proof.
  unfold shaped, ones. rewrite repeat_length. apply andb_true_intro; split; [now apply Nat.leb_le|].
  apply forallb_forall. intros r Hr. apply repeat_spec in Hr; subst. rewrite repeat_length.
  now apply Nat.leb_le.
Qed.

(* What a step needs to know of a node. *)
Definition enclosed (n : nat) (E : table) (r : rows) :=
  Forall (Forall (fun b => 0 <= b)) (low r) /\
  (forall y, (y < k)%nat -> next r y = true -> (0 < mass n y)%R) /\
  seen n (S n) E r.

(* The tables of a side bound all of its nodes. *)
Section all.
Variable count_up : Z -> Z.
Hypothesis count_above : forall n, 0 < count_up (Z.of_nat n) ->
  (C ^ n <= value one (count_up (Z.of_nat n)))%R.
Variable r : nat -> table -> rows.
Variable m : nat -> positive -> option mixed.
Variable late_r : table -> rows.
Variable late_m : positive -> option mixed.
Variable N n0 : nat.   (* nodes have at most N nodes on this side, late ones more than n0 *)
Hypothesis sums : forall n x, (n <= N)%nat -> (x < k)%nat -> (0 < mass n x)%R -> sums_to_1 k K n x.
Hypothesis early_rows : forall n E, (n < N)%nat -> enclosed n E (r n (growth one c E)).
Hypothesis early_mixed : forall n p E, (Pos.to_nat p + n <= N)%nat ->
  bounds k C K mass n (real E) ->
  match m n p with
  | Some m => 0 < count_up (Zpos p - 1) ->
      mixes_at (Pos.to_nat p + n) E (count_up (Zpos p - 1)) m
  | None => True
  end.
Hypothesis late_rows : forall n E, (n0 <= n < N)%nat -> enclosed n E (late_r (growth one c E)).
Hypothesis late_mixed : forall n p E, (n0 < n <= N)%nat ->
  (forall j, (S n0 - Pos.to_nat p <= j < n)%nat -> bounds k C K mass j (real E)) ->
  match late_m p with
  | Some m => 0 < count_up (Zpos p - 1) -> mixes_at n E (count_up (Zpos p - 1)) m
  | None => True
  end.

Let fine n E := shaped k E = true /\ bounds k C K mass n (real E).

Lemma early_bounds l : forall j before,
  early_ok one k c count_up r m j before l = true -> length before = S j ->
  (forall i, (i <= j)%nat -> (i <= N)%nat -> fine i (nth (j - i) before [])) ->
  forall i, (i <= j + length l)%nat -> (i <= N)%nat ->
    fine i (nth i (rev before ++ map bound l) []).
Proof.
  induction l as [|s l IH]; intros j before H Len B i Hi HN.
  - rewrite app_nil_r, rev_nth by (simpl in Hi; lia).
    replace (length before - S i)%nat with (j - i)%nat
      by lia. apply B; simpl in Hi; lia.
  - simpl map. change (bound s :: map bound l) with ([bound s] ++ map bound l). rewrite app_assoc.
    change (rev before ++ [bound s]) with (rev (bound s :: before)).
    cbn [early_ok] in H. cbv zeta in H.
    apply andb_prop in H as [H Rest]. apply andb_prop in H as [Sh H].
    apply (IH (S j)); auto; [simpl; lia| |simpl in Hi; lia]. clear i Hi HN. intros i Hi HN.
    destruct (Nat.eq_dec i (S j)) as [->|Ne].
    2: { replace (S j - i)%nat with (S (j - i)) by lia. apply B; lia. }
    rewrite Nat.sub_diag. split; [assumption|].
    destruct (Z.leb_spec (Zpos (reach s)) (Z.of_nat (S j))) as [Pw|]; [|discriminate].
    assert (Hd : forall l : list table, hd [] l = nth 0 l []) by (now intros []).
    assert (B0 := B j (le_n j) ltac:(lia)). rewrite Nat.sub_diag, <- Hd in B0.
      destruct B0 as [S0 B0].
    destruct (early_rows j (hd [] before) HN) as (Low & Nx & See).
    set (n := pred (Pos.to_nat (reach s))) in *.
    assert (Bn := B (j - n)%nat ltac:(lia) ltac:(lia)).
    replace (j - (j - n))%nat with n in Bn by lia. destruct Bn as [_ Bn].
    assert (Mx := early_mixed (j - n) (reach s) (nth n before []) ltac:(lia) Bn).
    replace (Pos.to_nat (reach s) + (j - n))%nat with (S j) in Mx by lia.
    replace (if (n =? 0)%nat then growth one c (hd [] before) else growth one c (nth n before []))
      with (growth one c (nth n before [])) in H.
    2: { destruct (Nat.eqb_spec n 0) as [E0|]; [now rewrite E0, Hd|reflexivity]. }
    apply (step_bounds j (S j)) with (9 := H); auto.
Qed.

Theorem side_bounds s :
  length (early s) = n0 -> side_ok one k c count_up r m late_r late_m (Z.of_nat N) s = true ->
  forall n, (n <= N)%nat -> bounds k C K mass n (real (at_node one k s (Z.of_nat n))).
Proof.
  intros Len H. unfold side_ok in H. cbv zeta in H. apply andb_prop in H as [He Hl].
  assert (A := early_bounds _ 0 [ones one k] He eq_refl). simpl rev in A. simpl app in A.
  assert (T0 : forall i, (i <= 0)%nat -> (i <= N)%nat -> fine i (nth (0 - i) [ones one k] [])).
  { intros i Hi _. replace i with 0%nat by lia. split; [apply ones_shaped|apply ones_bounds]. }
  specialize (A T0). clear T0. change (ones one k :: map bound (early s)) with (tables one k s) in
    A.
  assert (Lt : length (tables one k s) = S n0) by (unfold tables; simpl; rewrite map_length; lia).
  intros n Hn. unfold at_node. rewrite Lt.
  destruct (Z.ltb_spec (Z.of_nat n) (Z.of_nat (S n0))) as [Lt'|Ge].
  - rewrite Nat2Z.id. apply A; lia.
  - rewrite Len in Hl. apply orb_prop in Hl as [Hl|Hl]; [apply Z.leb_le in Hl; lia|].
    apply andb_prop in Hl as [Hl Wi]. apply andb_prop in Hl as [Hl St].
    apply andb_prop in Hl as [Hl Fa]. apply andb_prop in Hl as [Hl Al].
    apply andb_prop in Hl as [Sb Sl]. rewrite forallb_forall in Al.
    apply (close k C K K_nonneg mass (S n0 - Pos.to_nat (reach (late s))) n0 N (real (begin s)));
      [| | |lia].
    + intros j Hj HN. apply bounds_weaker with (real (nth j (tables one k s) [])); auto.
      * apply within_spec, Al. rewrite Lt. set (d := Z.to_nat _).
        assert (Hd : (d <= j)%nat) by (unfold d; lia).
        rewrite <- (firstn_skipn d (tables one k s)) at 1. rewrite app_nth2; rewrite firstn_length;
          [|lia].
        apply nth_In. rewrite skipn_length. lia.
      * apply A; lia.
    + intros j Hj Bj.
      destruct (late_rows j (begin s) Hj) as (Low & Nx & See).
      assert (Mx := late_mixed (S j) (reach (late s)) (begin s) ltac:(lia)
        ltac:(intros; apply Bj; lia)).
      assert (Bn := Bj j ltac:(lia)).
      apply (step_bounds j (S j)) with (9 := St); auto; [intros; apply sums; auto; lia| ].
      destruct (capped s); [|lia]. intros P. apply Rle_trans with (2 := count_above N P).
      apply Rle_pow; [assumption|lia].
    + now apply within_spec.
Qed.

(* The same of a periodic chain: a node with n nodes on this side has the phase ph n. *)
Theorem cycle_bounds (P : nat) (rp : nat -> rows) (next ph : nat -> nat) capped l :
  cycle_ok one k c count_up P rp next (Z.of_nat N) capped l = true ->
  (forall n, (n <= N)%nat -> (ph n < P)%nat) ->
  (forall n, (n < N)%nat -> next (ph (S n)) = ph n /\ forall E, enclosed n E (rp (ph (S n)))) ->
  forall n, (n <= N)%nat -> bounds k C K mass n (real (at_phase l (ph n))).
Proof.
  intros H Below Next. unfold cycle_ok in H. rewrite every_spec in H.
  assert (Shaped : forall n, (n <= N)%nat -> shaped k (at_phase l (ph n)) = true).
  { intros n Hn. specialize (H _ (Below _ Hn)). ands. assumption. }
  induction n as [|n IH]; intros Hn; specialize (H _ (Below _ Hn)); ands.
  - intros x y g Hx Hy _ _ Pos L. simpl. apply real_pos in Pos.
    unfold started in H1. ands. specialize (H1 x Hx). ands. specialize (H1 y Hy).
    apply orb_prop in H1 as [H1|H1]; ands; [lia|].
    apply (value_le one _ _ one_pos) in H1. unfold value at 1 in H1. pose proof one_R.
    replace (IZR one / IZR one)%R with 1%R in H1 by (field; lra).
    unfold real. pose proof (proj1 L []). nra.
  - destruct (Next n) as [E En]; [lia|]. rewrite E in H0.
    destruct (En (at_phase l (ph n))) as (Low & Nx & See).
    apply (step_bounds n (S n) (rp (ph (S n))) None (at_phase l (ph n)) []) with (9 := H0); auto.
    + apply Shaped. lia.
    + apply IH. lia.
    + destruct capped; [|lia]. intros P0. apply Rle_trans with (2 := count_above N P0).
      apply Rle_pow; [assumption|lia].
Qed.
End all.
End side.
End steps.
