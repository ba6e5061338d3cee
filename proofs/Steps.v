(* The rules COUNT, STEP and CLOSE of the checker are sound. *)
From Coq Require Import Reals Lra Lia List Arith ZArith QArith Qreals Bool.
From Pufferflow Require Import Sums Sides Blocks Numbers Claims Checker.
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
Variable G : table.
Variable h : nat -> R.
Hypothesis h_growing : growing k (real G) h.
Hypothesis G_shaped : shaped k G = true.

Let h0 (i : nat) : R := if (i <? k)%nat then h i else 0%R.

Lemma h0_nonneg i : (0 <= h0 i)%R.
Proof. unfold h0. destruct (Nat.ltb_spec i k); [now apply h_growing|lra]. Qed.

Lemma h0_eq i : (i < k)%nat -> h0 i = h i.
Proof. intros H. unfold h0. apply Nat.ltb_lt in H. now rewrite H. Qed.

(* Lemma 3: a flow g from z to y takes g h(z) away and adds g e^w h(y), which is no less. *)
Lemma move_dot arcs : forall net net', move one G arcs net = Some net' ->
  (dot net h0 <= dot net' h0)%R.
Proof.
  induction arcs as [|[[z y] g] arcs IH]; intros net net' H; simpl in H.
  - injection H as <-. lra.
  - destruct (_ && _) eqn:Q in H; [|discriminate]. ands.
    apply Rle_trans with (2 := IH _ _ H). rewrite !dot_add, opp_IZR, !mult_IZR.
    destruct (shaped_get _ _ _ _ G_shaped H1) as [Hz Hy].
    rewrite !h0_eq by assumption.
    assert (A := proj2 h_growing z y Hz Hy (proj2 (real_pos G z y) H1)).
    unfold real, value in A. pose proof one_R as Po.
    apply (Rmult_le_compat_r (IZR one)) in A; [|lra].
    replace (IZR (get G z y) / IZR one * h y * IZR one)%R with (IZR (get G z y) * h y)%R in A
      by (field; lra).
    assert (0 <= IZR g)%R by (now apply IZR_le).
    pose proof (Rmult_le_compat_l _ _ _ H2 A). lra.
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
  move one G arcs (map (Z.mul one) high) = Some net -> under net low e = true -> 0 <= e ->
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

Lemma growth_growing E h :
  growing k (fun z y => C * real E z y)%R h -> growing k (real (growth one c E)) h.
Proof.
  intros [P H]; split; [assumption|]. intros z y Hz Hy Pos.
  pose proof one_R as Po.
  assert (Pe : 0 < get E z y).
  { apply real_pos in Pos. rewrite growth_get in Pos. unfold up in Pos.
    destruct (Z.lt_ge_cases 0 (get E z y)) as [|Ge]; [assumption|exfalso].
    assert (0 <= c) by (apply le_IZR; unfold value in c_above;
      apply Rmult_le_reg_r with (/ IZR one)%R; [now apply Rinv_0_lt_compat|]; lra).
    assert (0 <= - (c * get E z y) / one) by (apply Z.div_pos; nia). lia. }
  apply Rle_trans with (1 := H z y Hz Hy
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

(* The distributions of a node with n + 1 nodes on this side lie between the bounds. *)
Definition enclosed (n : nat) (r : rows) :=
  Forall (Forall (fun b => 0 <= b)) (low r) /\
  forall x, (x < k)%nat -> can r x = true ->
  sums_to_1 k K (S n) x /\
  forall z, (z < k)%nat -> (real (low r) x z <= K n x z <= real (high r) x z)%R.

Lemma step_bounds n r E F count W :
  enclosed n r -> shaped k E = true ->
  (0 < count -> (C ^ S n <= value one count)%R) ->
  step_ok one k r (growth one c E) F count W = true ->
  bounds k C K n (real E) -> bounds k C K (S n) (real F).
Proof.
  intros [Low En] Sh Hc St B x y g Hx Hy Pos Lg.
  unfold step_ok in St. ands. specialize (St x Hx). ands. specialize (St y Hy).
  apply real_pos in Pos. apply orb_prop in St. destruct St as [St|St]; [ands; lia|]. ands.
  destruct (En x Hx H) as [Sx Ex]. destruct (En y Hy H1) as [Sy Ey].
  assert (Pg : (0 <= beyond k K (S n) y g)%R)
    by (apply beyond_nonneg; auto; intro; apply Lg).
  pose proof one_R as Po.
  apply orb_prop in H0. destruct H0 as [D|D].
  - ands. subst y. apply (value_le one _ _ one_pos) in H2. unfold value in H2.
    replace (IZR one / IZR one)%R with 1%R in H2 by (field; lra).
    fold (value one (get F x x)) in H2. unfold real.
    apply (Rmult_le_compat_r _ _ _ Pg) in H2. lra.
  - unfold pair_ok in D. destruct (nth y (nth x W []) Count) as [|arcs].
    + ands. apply Rle_trans with (1 := Sides.count k C C1 K K_nonneg (S n) x y g Hx Hy Sx Sy Lg).
      apply Rmult_le_compat_r; [assumption|]. apply Rle_trans with (1 := Hc H0).
      now apply value_le.
    + destruct (move _ _ _ _) as [net|] eqn:M; [|discriminate].
      cbn [beyond]. unfold real.
      apply (flows_bound k (growth one c E)
        (fun z => beyond k K n z (fun r => g (z :: r)))) with (1 := growth_growing E _
          (step_growing k C C1 K K_nonneg n _ g B Lg)) (3 := M) (4 := D).
      * now apply growth_shaped.
      * lia.
      * destruct (Nat.lt_ge_cases y (length (low r))) as [Ly|Ge].
        -- rewrite Forall_forall in Low. apply Low. now apply nth_In.
        -- rewrite nth_overflow by assumption. constructor.
      * intros z Hz. apply Ex; assumption.
      * intros z Hz. apply Ey; assumption.
Qed.

(* The same through several steps; the records in between cost e^c each. *)
Lemma block_bounds n m r E F W D cm :
  Forall (Forall (fun b => 0 <= b)) (low r) ->
  (forall x, (x < k)%nat -> can r x = true ->
    (forall H, through k K (S m) n x H = sum k (fun z => D x z * H z)%R) /\
    forall z, (z < k)%nat -> (real (low r) x z <= D x z <= real (high r) x z)%R) ->
  shaped k E = true -> (C ^ m <= value one cm)%R -> 0 <= cm ->
  step_ok one k r (growth one c E) F 0 W = true ->
  bounds k C K n (real E) -> bounds k C K (S m + n) (real (growth one cm F)).
Proof.
  intros Low En Sh Hcm Pcm St B x y g Hx Hy Pos Lg.
  pose proof one_R as Po.
  assert (Pg : (0 <= beyond k K (S m + n) y g)%R)
    by (apply beyond_nonneg; auto; intro; apply Lg).
  assert (G : get (growth one cm F) x y = up (cm * get F x y) one).
  { unfold growth. apply (get_map (fun e => up (cm * e) one)).
    rewrite Z.mul_0_r. unfold up. now rewrite Z.div_0_l by lia. }
  apply real_pos in Pos. rewrite G in Pos.
  assert (Pe : 0 < get F x y).
  { destruct (Z.lt_ge_cases 0 (get F x y)) as [|Ge]; [assumption|exfalso].
    unfold up in Pos. assert (0 <= - (cm * get F x y) / one) by (apply Z.div_pos; nia). lia. }
  assert (Up : (C ^ m * value one (get F x y) <= real (growth one cm F) x y)%R).
  { unfold real. rewrite G. pose proof (up_ge (cm * get F x y) one one_pos) as U.
    rewrite mult_IZR in U. apply IZR_lt in Pe. unfold value in *.
    apply Rmult_le_reg_r with (IZR one); [assumption|].
    replace (IZR (up (cm * get F x y) one) / IZR one * IZR one)%R
      with (IZR (up (cm * get F x y) one)) by (field; lra).
    replace (C ^ m * (IZR (get F x y) / IZR one) * IZR one)%R with (C ^ m * IZR (get F x y))%R
      by (field; lra).
    apply Rle_trans with (2 := U).
    replace (IZR cm * IZR (get F x y) / IZR one)%R with (IZR cm / IZR one * IZR (get F x y))%R
      by (field; lra). apply Rmult_le_compat_r; lra. }
  unfold step_ok in St. ands. specialize (St x Hx). ands. specialize (St y Hy).
  apply orb_prop in St. destruct St as [St|St]; [ands; lia|]. ands.
  destruct (En x Hx H) as [Tx Ex]. destruct (En y Hy H1) as [Ty Ey].
  apply orb_prop in H0. destruct H0 as [Dg|Dg].
  - ands. subst y. apply (value_le one _ _ one_pos) in H2. unfold value at 1 in H2.
    replace (IZR one / IZR one)%R with 1%R in H2 by (field; lra).
    assert (C0 : (1 <= C ^ m)%R) by (now apply pow_R1_Rle).
    assert (1 <= real (growth one cm F) x x)%R by nra. nra.
  - unfold pair_ok in Dg. destruct (nth y (nth x W []) Count) as [|arcs]; [ands; lia|].
    destruct (move _ _ _ _) as [net|] eqn:M; [|discriminate].
    destruct (block k C C1 K K_nonneg m n (real E) g B Lg) as (h & Gr & Bl).
    destruct (Bl x Hx) as [Bx _]. destruct (Bl y Hy) as [_ By].
    assert (Fl : (sum k (fun z => D x z * h z) <= value one (get F x y)
      * sum k (fun z => D y z * h z))%R).
    { apply (flows_bound k (growth one c E) h) with (1 := growth_growing E h Gr) (3 := M) (4 := Dg).
      - now apply growth_shaped.
      - lia.
      - destruct (Nat.lt_ge_cases y (length (low r))) as [Ly|Ge].
        + rewrite Forall_forall in Low. apply Low. now apply nth_In.
        + rewrite nth_overflow by assumption. constructor.
      - intros z Hz. apply Ex; assumption.
      - intros z Hz. apply Ey; assumption. }
    rewrite <- Tx, <- Ty in Fl.
    assert (V0 : (0 <= value one (get F x y))%R) by (left; now apply value_pos).
    apply Rle_trans with (1 := Bx). apply Rle_trans with (1 := Fl).
    apply Rle_trans with (value one (get F x y) * (C ^ m * beyond k K (S m + n) y g))%R.
    + now apply Rmult_le_compat_l.
    + rewrite <- Rmult_assoc, (Rmult_comm (value _ _)). now apply Rmult_le_compat_r.
Qed.

Lemma within_spec E F : within k E F = true -> forall x y, (x < k)%nat -> (y < k)%nat ->
  (0 < real F x y)%R -> (0 < real E x y <= real F x y)%R.
Proof.
  unfold within. intros H x y Hx Hy P. ands. specialize (H x Hx). ands. specialize (H y Hy).
  apply real_pos in P. apply orb_prop in H. destruct H as [H|H]; ands; [lia|].
  split; [now apply real_pos|now apply value_le].
Qed.

Lemma ones_get x y : (x < k)%nat -> (y < k)%nat -> get (ones one k) x y = one.
Proof.
  intros Hx Hy. unfold get, ones. rewrite nth_indep with (d' := repeat one k)
    by (rewrite repeat_length; lia). rewrite nth_repeat.
  rewrite nth_indep with (d' := one) by (rewrite repeat_length; lia). apply nth_repeat.
Qed.

Lemma ones_bounds : bounds k C K 0 (real (ones one k)).
Proof.
  intros x y g Hx Hy P L. unfold real. rewrite ones_get by assumption. simpl. unfold value.
  pose proof one_R. right. field. lra.
Qed.

Lemma ones_shaped : shaped k (ones one k) = true.
Proof.
  unfold shaped, ones. rewrite repeat_length. apply andb_true_intro; split; [now apply Nat.leb_le|].
  apply forallb_forall. intros r Hr. apply repeat_spec in Hr; subst. rewrite repeat_length.
  now apply Nat.leb_le.
Qed.

(* The tables of a side bound all of its nodes. *)
Section all.
Variable count_up : Z -> Z.
Hypothesis count_above : forall n, 0 < count_up (Z.of_nat n) ->
  (C ^ n <= value one (count_up (Z.of_nat n)))%R.
Variable r : nat -> rows.
Variable late : rows.
Variable N : nat.   (* nodes have at most N nodes on this side *)
Hypothesis early_enclosed : forall n, (n < N)%nat -> enclosed n (r n).
Hypothesis late_enclosed : forall n, (n < N)%nat -> enclosed n late.

Lemma early_bounds l : forall j E,
  early_ok one k c count_up r j E l = true -> shaped k E = true -> bounds k C K j (real E) ->
  forall i, (i <= length l)%nat -> (j + i <= N)%nat ->
  shaped k (nth i (E :: map fst l) []) = true
  /\ bounds k C K (j + i) (real (nth i (E :: map fst l) [])).
Proof.
  induction l as [|[F W] l IH]; intros j E H Sh B i Hi HN.
  - simpl in Hi. replace i with 0%nat by lia. rewrite Nat.add_0_r. now split.
  - destruct i as [|i]; [rewrite Nat.add_0_r; now split|].
    simpl in H. ands. replace (j + S i)%nat with (S j + i)%nat by lia.
    change (nth (S i) (E :: map fst ((F, W) :: l)) []) with (nth i (F :: map fst l) []).
    apply IH; auto; try (simpl in Hi; lia).
    apply step_bounds with (r := r j) (E := E) (count := count_up (Z.of_nat (S j))) (W := W); auto.
    apply early_enclosed. lia.
Qed.

Theorem side_bounds s :
  side_ok one k c count_up r late (Z.of_nat N) s = true ->
  forall n, (n <= N)%nat -> bounds k C K n (real (at_node one k s (Z.of_nat n))).
Proof.
  intros H n Hn. unfold side_ok in H. apply andb_prop in H. destruct H as [He Hl].
  pose proof (early_bounds _ _ _ He ones_shaped ones_bounds) as A.
  change (ones one k :: map fst (early s)) with (tables one k s) in A.
  assert (Len : length (tables one k s) = S (length (early s)))
    by (unfold tables; simpl; now rewrite map_length).
  unfold at_node. rewrite Len.
  destruct (Z.ltb_spec (Z.of_nat n) (Z.of_nat (S (length (early s))))) as [Lt|Ge].
  - rewrite Nat2Z.id. apply (A n); lia.
  - assert (Far : (n > length (early s))%nat) by lia.
    apply orb_prop in Hl. destruct Hl as [Hl|Hl]; [ands; lia|]. ands.
    set (n0 := length (early s)) in *.
    apply (close k C K K_nonneg n0 N (real (begin s)) (real (rest s))).
    + apply bounds_weaker with (real (last (tables one k s) [])); auto.
      * now apply within_spec.
      * assert (La : last (tables one k s) [] = nth n0 (tables one k s) []).
        { clear - Len. revert Len. generalize (tables one k s) n0.
          induction l as [|a l IH]; intros m E; [discriminate|].
          destruct l as [|b l]; [simpl in E; replace m with 0%nat by lia; reflexivity|].
          destruct m as [|m]; [discriminate|]. simpl last. simpl nth. apply IH. simpl in *; lia. }
        rewrite La. apply (A n0); lia.
    + intros j Hj Bj.
      apply step_bounds with (r := late) (E := begin s) (W := proof s)
        (count := if capped s then count_up (Z.of_nat N) else 0); auto; [apply late_enclosed; lia|].
      destruct (capped s); [|lia]. intros P. apply Rle_trans with (2 := count_above N P).
      apply Rle_pow; [assumption|lia].
    + now apply within_spec.
    + lia.
Qed.

(* The same of a periodic chain: a node with n nodes on this side has the phase ph n. *)
Theorem cycle_bounds (P : nat) (rp : nat -> rows) (next ph : nat -> nat) capped l :
  cycle_ok one k c count_up P rp next (Z.of_nat N) capped l = true ->
  (forall n, (n <= N)%nat -> (ph n < P)%nat) ->
  (forall n, (n < N)%nat -> next (ph (S n)) = ph n /\ enclosed n (rp (ph (S n)))) ->
  forall n, (n <= N)%nat -> bounds k C K n (real (at_phase l (ph n))).
Proof.
  intros H Below Next. unfold cycle_ok in H. rewrite every_spec in H.
  assert (Shaped : forall n, (n <= N)%nat -> shaped k (at_phase l (ph n)) = true).
  { intros n Hn. specialize (H _ (Below _ Hn)). ands. assumption. }
  induction n as [|n IH]; intros Hn; specialize (H _ (Below _ Hn)); ands.
  - intros x y g Hx Hy Pos L. simpl. apply real_pos in Pos.
    unfold started in H1. ands. specialize (H1 x Hx). ands. specialize (H1 y Hy).
    apply orb_prop in H1 as [H1|H1]; ands; [lia|].
    apply (value_le one _ _ one_pos) in H1. unfold value at 1 in H1. pose proof one_R.
    replace (IZR one / IZR one)%R with 1%R in H1 by (field; lra).
    unfold real. pose proof (proj1 L []). nra.
  - destruct (Next n) as [E En]; [lia|]. rewrite E in H0.
    apply step_bounds with (r := rp (ph (S n))) (E := at_phase l (ph n))
      (count := if capped then count_up (Z.of_nat N) else 0) (W := snd (nth (ph (S n)) l ([], [])));
      auto; [apply Shaped; lia| |apply IH; lia].
    destruct capped; [|lia]. intros P0. apply Rle_trans with (2 := count_above N P0).
    apply Rle_pow; [assumption|lia].
Qed.
End all.
End side.
End steps.
