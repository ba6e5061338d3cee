(* Lemma 6: what the neighbour reveals if its distribution is any multiple of known weights.

   a and b are the weights of the neighbour's values given two values of the node, h what lies
   beyond. An inequality for all mixtures of values follows from that for all mixtures of two. *)
From Coq Require Import Reals Lra Lia List Arith Psatz.
From Pufferflow Require Import Sums.
Import ListNotations.
Open Scope R_scope.

(* The first place at which a weight that falls is 0. *)
Lemma hit (l : list (R * R)) :
  (forall p, In p l -> 0 <= fst p) -> (exists p, In p l /\ snd p < 0) ->
  exists t, 0 <= t /\ (forall p, In p l -> 0 <= fst p + t * snd p) /\
    exists p, In p l /\ fst p + t * snd p = 0.
Proof.
  induction l as [|[m d] l IH]; intros M [p [Hp Neg]]; [contradiction|].
  assert (M0 : 0 <= m) by (apply (M (m, d)); now left).
  assert (Ml : forall p, In p l -> 0 <= fst p) by (intros; apply M; now right).
  assert (Own : d < 0 -> (forall p, In p l -> 0 <= fst p + m / - d * snd p) ->
    exists t, 0 <= t /\ (forall p, In p ((m, d) :: l) -> 0 <= fst p + t * snd p) /\
      exists p, In p ((m, d) :: l) /\ fst p + t * snd p = 0).
  { intros Hd All. exists (m / - d). assert (0 < / - d) by (apply Rinv_0_lt_compat; lra).
    split; [apply Rmult_le_pos; lra|]. assert (E : m + m / - d * d = 0) by (field; lra). split.
    - intros r [<-|Hr]; [simpl; lra|auto].
    - exists (m, d). split; [now left|assumption]. }
  destruct (Exists_dec (fun p => snd p < 0) l (fun p => Rlt_dec (snd p) 0)) as [Ex|No].
  - apply Exists_exists in Ex. destruct (IH Ml Ex) as (t & T0 & All & r & Hr & Z).
    destruct (Rle_dec 0 (m + t * d)) as [Ok|Bad].
    + exists t. split; [assumption|]. split; [intros s [<-|Hs]; auto|].
      exists r. split; [now right|assumption].
    + assert (Hd : d < 0) by nra. apply Own; [assumption|]. intros s Hs.
      assert (T1 : m / - d <= t).
      { apply Rmult_le_reg_r with (- d); [lra|].
        replace (m / - d * - d) with m by (field; lra). lra. }
      assert (T2 : 0 <= m / - d).
      { apply Rmult_le_pos; [assumption|]. left. apply Rinv_0_lt_compat; lra. }
      specialize (All s Hs). specialize (Ml s Hs). destruct (Rle_dec 0 (snd s)); nra.
  - destruct Hp as [<-|Hp]; [|exfalso; apply No, Exists_exists; now exists p].
    apply Own; [assumption|]. intros s Hs.
    assert (0 <= snd s).
    { apply Rnot_lt_le. intros C. apply No, Exists_exists. now exists s. }
    assert (0 <= m / - d).
    { apply Rmult_le_pos; [assumption|]. left. apply Rinv_0_lt_compat; simpl in Neg; lra. }
    specialize (Ml s Hs). nra.
Qed.

(* Three weights can be moved along d, in the direction in which s does not fall, until one is 0. *)
Lemma shift m1 m2 m3 d1 d2 d3 s :
  0 <= m1 -> 0 <= m2 -> 0 <= m3 -> (d1 <> 0 \/ d2 <> 0 \/ d3 <> 0) ->
  (0 <= d1 -> 0 <= d2 -> 0 <= d3 -> s = 0) -> (d1 <= 0 -> d2 <= 0 -> d3 <= 0 -> s = 0) ->
  exists t, 0 <= t * s /\ 0 <= m1 + t * d1 /\ 0 <= m2 + t * d2 /\ 0 <= m3 + t * d3 /\
    (m1 + t * d1 = 0 \/ m2 + t * d2 = 0 \/ m3 + t * d3 = 0).
Proof.
  intros M1 M2 M3 D Up Down.
  assert (Go : forall e1 e2 e3, (e1 < 0 \/ e2 < 0 \/ e3 < 0) ->
    exists t, 0 <= t /\ 0 <= m1 + t * e1 /\ 0 <= m2 + t * e2 /\ 0 <= m3 + t * e3 /\
      (m1 + t * e1 = 0 \/ m2 + t * e2 = 0 \/ m3 + t * e3 = 0)).
  { intros e1 e2 e3 E. destruct (hit [(m1, e1); (m2, e2); (m3, e3)]) as (t & T & All & p & Hp & Z).
    - intros p [<-|[<-|[<-|[]]]]; assumption.
    - destruct E as [E|[E|E]]; [exists (m1, e1)|exists (m2, e2)|exists (m3, e3)];
        split; simpl; auto.
    - exists t. split; [assumption|].
      assert (A1 := All (m1, e1) ltac:(simpl; auto)). assert (A2 := All (m2, e2) ltac:(simpl;
        auto)).
      assert (A3 := All (m3, e3) ltac:(simpl; auto)). simpl in A1, A2, A3.
      repeat split; try assumption. destruct Hp as [<-|[<-|[<-|[]]]]; simpl in Z; auto. }
  destruct (Rle_dec 0 s) as [S0|S0].
  - destruct (Rlt_dec d1 0), (Rlt_dec d2 0), (Rlt_dec d3 0);
      try (destruct (Go d1 d2 d3 ltac:(tauto)) as (t & T & H); exists t; split; [nra|exact H]).
    assert (Z : s = 0) by (apply Up; lra). rewrite Z.
    destruct (Go (- d1) (- d2) (- d3) ltac:(lra)) as (t & T & H1 & H2 & H3 & H4).
    exists (- t). split; [lra|].
    replace (m1 + - t * d1) with (m1 + t * - d1) by ring.
    replace (m2 + - t * d2) with (m2 + t * - d2) by ring.
    replace (m3 + - t * d3) with (m3 + t * - d3) by ring. auto.
  - destruct (Rlt_dec 0 d1), (Rlt_dec 0 d2), (Rlt_dec 0 d3);
      try (destruct (Go (- d1) (- d2) (- d3) ltac:(lra)) as (t & T & H1 & H2 & H3 & H4);
        exists (- t); split; [nra|];
        replace (m1 + - t * d1) with (m1 + t * - d1) by ring;
        replace (m2 + - t * d2) with (m2 + t * - d2) by ring;
        replace (m3 + - t * d3) with (m3 + t * - d3) by ring; now auto).
Qed.

(* Two values, of which the first is the likelier one given the first value of the node: U and V are
   the products of the cross ratio, a^2 and b^2 what lies beyond. *)
Lemma two_roots p q a b P Q s l : 0 <= q <= p -> 0 <= a -> 0 <= b -> 1 <= l ->
  p <= P -> 0 <= Q <= q ->
  P <= Q \/ (0 < s /\ a <= s * b /\ Q + s * P <= l * (s * Q + P)) \/ P <= l * Q ->
  p * a + q * b <= l * (q * a + p * b).
Proof.
  intros Hq Ha Hb Hl HP HQ [H|[(S0 & S1 & H)|H]].
  - assert (E : q = p) by lra. rewrite E.
    assert (0 <= (l - 1) * (p * (a + b))) by (apply Rmult_le_pos; [lra|apply Rmult_le_pos; lra]).
    lra.
  - destruct (Rle_dec a (l * b)) as [Near|Far].
    + assert (q * (b - l * a) <= p * (l * b - a)); [|lra].
      destruct (Rle_dec (b - l * a) 0) as [N|N]; [nra|].
      apply Rle_trans with (p * (b - l * a)); [nra|]. apply Rmult_le_compat_l; nra.
    + assert (A : 0 < a - l * b) by lra.
      assert (B : 0 < l * a - b) by nra.
      assert (Sb : 0 <= (s * b - a) * (l * l - 1)) by (apply Rmult_le_pos; nra).
      assert (B0 : 0 < b \/ b = 0) by lra.
      assert (L1 : 0 < l * s - 1).
      { destruct B0 as [B0|B0]; [|rewrite B0 in *; lra]. assert (l < s) by nra. nra. }
      assert (C : P * (a - l * b) * (l * s - 1) <= Q * (l * a - b) * (l * s - 1)).
      { apply Rle_trans with (P * (s - l) * (l * a - b)); [|nra].
        assert (0 <= P * ((s - l) * (l * a - b) - (a - l * b) * (l * s - 1)));
          [apply Rmult_le_pos; [lra|]|lra].
        replace ((s - l) * (l * a - b) - (a - l * b) * (l * s - 1)) with ((s * b - a) * (l * l - 1))
          by ring. assumption. }
      assert (P * (a - l * b) <= Q * (l * a - b)) by (apply Rmult_le_reg_r with (1 := L1); lra).
      assert (p * (a - l * b) <= P * (a - l * b)) by (apply Rmult_le_compat_r; lra).
      assert (Q * (l * a - b) <= q * (l * a - b)) by (apply Rmult_le_compat_r; lra). lra.
  - assert (l * Q <= l * q) by (apply Rmult_le_compat_l; lra).
    assert (p * a <= l * q * a) by (apply Rmult_le_compat_r; lra).
    assert (q * b <= l * p * b) by (apply Rmult_le_compat_r; [lra|nra]). lra.
Qed.

Lemma two_ordered a1 b1 h1 a2 b2 h2 P Q s L m n :
  0 <= a1 -> 0 <= b1 -> 0 <= h1 -> 0 <= a2 -> 0 <= b2 -> 0 <= h2 -> 1 <= L -> 0 <= m -> 0 <= n ->
  a2 * b1 <= a1 * b2 -> 0 <= P -> 0 <= Q -> a1 * b2 <= P * P -> Q * Q <= a2 * b1 ->
  P <= Q \/ (0 < s /\ h1 <= s * s * h2 /\
    (Q + s * P) * (Q + s * P) <= L * ((s * Q + P) * (s * Q + P))) \/ P * P <= L * (Q * Q) ->
  (m * (a1 * h1) + n * (a2 * h2)) * (m * b1 + n * b2)
  <= L * ((m * (b1 * h1) + n * (b2 * h2)) * (m * a1 + n * a2)).
Proof.
  intros A1 B1 H1 A2 B2 H2 L1 M N O P0 Q0 HP HQ H.
  assert (U : 0 <= a1 * b2) by nra. assert (V : 0 <= a2 * b1) by nra.
  set (p := sqrt (a1 * b2)). set (q := sqrt (a2 * b1)). set (l := sqrt L).
  set (x := sqrt h1). set (y := sqrt h2).
  assert (Ep : p * p = a1 * b2) by (now apply sqrt_sqrt).
  assert (Eq : q * q = a2 * b1) by (now apply sqrt_sqrt).
  assert (El : l * l = L) by (apply sqrt_sqrt; lra).
  assert (Ex : x * x = h1) by (now apply sqrt_sqrt).
  assert (Ey : y * y = h2) by (now apply sqrt_sqrt).
  assert (Pp : 0 <= p) by apply sqrt_pos. assert (Pq : 0 <= q) by apply sqrt_pos.
  assert (Px : 0 <= x) by apply sqrt_pos. assert (Py : 0 <= y) by apply sqrt_pos.
  assert (Pl : 0 <= l) by apply sqrt_pos.
  assert (le_sq : forall u v, 0 <= u -> 0 <= v -> u * u <= v * v -> u <= v).
  { intros u v Hu Hv Le. apply Rsqr_incr_0; assumption. }
  assert (L1' : 1 <= l) by (apply le_sq; lra).
  assert (R : p * x + q * y <= l * (q * x + p * y)).
  { apply two_roots with P Q s; auto.
    - split; [assumption|]. apply le_sq; lra.
    - apply le_sq; lra.
    - split; [assumption|]. apply le_sq; lra.
    - destruct H as [H|[(S0 & S1 & H)|H]]; [now left| |].
      + right; left. split; [assumption|]. split.
        * apply le_sq; [assumption|nra|]. rewrite Ex.
          replace (s * y * (s * y)) with (s * s * (y * y))
            by ring. now rewrite Ey.
        * apply le_sq; [nra| |].
          -- apply Rmult_le_pos; [assumption|]. nra.
          -- apply Rle_trans with (1 := H). rewrite <- El. right; ring.
      + right; right. apply le_sq; [assumption|nra|]. apply Rle_trans with (1 := H). rewrite <- El.
        right; ring. }
  assert (K : (p * x + q * y) * (p * x + q * y) <= L * ((q * x + p * y) * (q * x + p * y))).
  { apply Rle_trans with (l * (q * x + p * y) * (l * (q * x + p * y))).
    - apply Rmult_le_compat; nra.
    - rewrite <- El. right; ring. }
  (* the product of the two squares is (p q x y)^2 *)
  set (v := sqrt (a1 * b1 * h1)). set (w := sqrt (a2 * b2 * h2)).
  assert (V1 : 0 <= a1 * b1 * h1) by (apply Rmult_le_pos; nra).
  assert (V2 : 0 <= a2 * b2 * h2) by (apply Rmult_le_pos; nra).
  assert (Ev : v * v = a1 * b1 * h1) by (now apply sqrt_sqrt).
  assert (Ew : w * w = a2 * b2 * h2) by (now apply sqrt_sqrt).
  assert (Evw : v * w = p * q * (x * y)).
  { assert (Pv : 0 <= v) by apply sqrt_pos. assert (Pw : 0 <= w) by apply sqrt_pos.
    apply Rsqr_inj; [nra|apply Rmult_le_pos; nra|]. unfold Rsqr.
    replace (v * w * (v * w)) with (v * v * (w * w)) by ring.
    replace (p * q * (x * y) * (p * q * (x * y))) with (p * p * (q * q) * (x * x * (y * y))) by
      ring.
    rewrite Ev, Ew, Ep, Eq, Ex, Ey. ring. }
  assert (Z : 0 <= (L - 1) * ((m * v - n * w) * (m * v - n * w)))
    by (apply Rmult_le_pos; [lra|apply Rle_0_sqr]).
  assert (K' : 0 <= m * n * (L * ((q * x + p * y) * (q * x + p * y))
    - (p * x + q * y) * (p * x + q * y))) by (apply Rmult_le_pos; nra).
  replace ((m * v - n * w) * (m * v - n * w))
    with (m * m * (v * v) + n * n * (w * w) - 2 * (m * n) * (v * w)) in Z by ring.
  rewrite Ev, Ew, Evw in Z.
  replace ((q * x + p * y) * (q * x + p * y))
    with (q * q * (x * x) + p * p * (y * y) + 2 * (p * q * (x * y))) in K' by ring.
  replace ((p * x + q * y) * (p * x + q * y))
    with (p * p * (x * x) + q * q * (y * y) + 2 * (p * q * (x * y))) in K' by ring.
  rewrite Ep, Eq, Ex, Ey in K'. nra.
Qed.

Section mixtures.
Variable k : nat.
Variables a b h : nat -> R.
Variable L : R.
Hypothesis a_nonneg : forall y, (y < k)%nat -> 0 <= a y.
Hypothesis b_nonneg : forall y, (y < k)%nat -> 0 <= b y.
Hypothesis L_nonneg : 0 <= L.
(* The inequality for mixtures of two values. *)
Hypothesis pairs : forall y z m n, (y < k)%nat -> (z < k)%nat -> 0 <= m -> 0 <= n ->
  (m * (a y * h y) + n * (a z * h z)) * (m * b y + n * b z)
  <= L * ((m * (b y * h y) + n * (b z * h z)) * (m * a y + n * a z)).

Definition mix (F : nat -> R) (l : list (R * nat)) : R :=
  fold_right (fun p s => fst p * F (snd p) + s) 0 l.

Let fine (l : list (R * nat)) := forall p, In p l -> 0 <= fst p /\ (snd p < k)%nat.
Let ah y := a y * h y.
Let bh y := b y * h y.

Lemma direction y1 y2 y3 : exists d1 d2 d3, (d1 <> 0 \/ d2 <> 0 \/ d3 <> 0) /\
  d1 * a y1 + d2 * a y2 + d3 * a y3 = 0 /\ d1 * b y1 + d2 * b y2 + d3 * b y3 = 0.
Proof.
  destruct (Req_dec (b y1 * a y2 - b y2 * a y1) 0) as [Z|NZ].
  - destruct (Req_dec (a y1) 0) as [A1|A1]; [destruct (Req_dec (a y2) 0) as [A2|A2]|].
    + destruct (Req_dec (b y1) 0) as [B1|B1]; [destruct (Req_dec (b y2) 0) as [B2|B2]|].
      * exists 1, 0, 0. rewrite A1, B1. repeat split; lra.
      * exists (b y2), (- b y1), 0. rewrite A1, A2. repeat split; try lra; auto.
      * exists (b y2), (- b y1), 0. rewrite A1, A2. repeat split; try lra; auto.
    + exists (a y2), (- a y1), 0. repeat split; try lra; auto.
    + exists (a y2), (- a y1), 0. repeat split; try lra; auto.
  - exists (b y2 * a y3 - b y3 * a y2), (b y3 * a y1 - b y1 * a y3), (b y1 * a y2 - b y2 * a y1).
    repeat split; try ring. auto.
Qed.

Lemma mix_list n : forall l, (length l <= n)%nat -> fine l ->
  mix ah l * mix b l <= L * (mix bh l * mix a l).
Proof.
  induction n as [|n IH]; intros l Len F.
  { destruct l; simpl in *; [lra|lia]. }
  destruct l as [|[m1 y1] [|[m2 y2] [|[m3 y3] l]]]; simpl in Len.
  - simpl; lra.
  - destruct (F (m1, y1)) as [M Y]; [now left|]. simpl in *.
    pose proof (pairs y1 y1 m1 0 Y Y M (Rle_refl 0)) as P. unfold ah, bh. lra.
  - destruct (F (m1, y1)) as [M1 Y1]; [now left|]. destruct (F (m2, y2)) as [M2 Y2]; [simpl; auto|].
    simpl in *. pose proof (pairs y1 y2 m1 m2 Y1 Y2 M1 M2) as P. unfold ah, bh. lra.
  - destruct (F (m1, y1)) as [M1 Y1]; [simpl; auto|]. destruct (F (m2, y2)) as [M2 Y2]; [simpl;
      auto|].
    destruct (F (m3, y3)) as [M3 Y3]; [simpl; auto|]. simpl fst in *. simpl snd in *.
    destruct (direction y1 y2 y3) as (d1 & d2 & d3 & D & Da & Db).
    pose (da := d1 * ah y1 + d2 * ah y2 + d3 * ah y3).
    pose (db := d1 * bh y1 + d2 * bh y2 + d3 * bh y3).
    set (all := (m1, y1) :: (m2, y2) :: (m3, y3) :: l) in *.
    pose (s := da * mix b all - L * (db * mix a all)).
    pose proof (a_nonneg y1 Y1). pose proof (a_nonneg y2 Y2). pose proof (a_nonneg y3 Y3).
    pose proof (b_nonneg y1 Y1). pose proof (b_nonneg y2 Y2). pose proof (b_nonneg y3 Y3).
    (* weights that all grow, without a change of the sums, are those of values that never occur *)
    assert (Z : forall e1 e2 e3, 0 <= e1 -> 0 <= e2 -> 0 <= e3 ->
      forall F, (forall y, (y < k)%nat -> 0 <= F y) ->
      e1 * F y1 + e2 * F y2 + e3 * F y3 = 0 ->
      e1 * (F y1 * h y1) + e2 * (F y2 * h y2) + e3 * (F y3 * h y3) = 0).
    { intros e1 e2 e3 E1 E2 E3 F0 P0 S0.
      pose proof (Rmult_le_pos _ _ E1 (P0 y1 Y1)). pose proof (Rmult_le_pos _ _ E2 (P0 y2 Y2)).
      pose proof (Rmult_le_pos _ _ E3 (P0 y3 Y3)).
      assert (Z1 : e1 * F0 y1 = 0) by lra. assert (Z2 : e2 * F0 y2 = 0) by lra.
      assert (Z3 : e3 * F0 y3 = 0) by lra.
      rewrite <- !Rmult_assoc, Z1, Z2, Z3. ring. }
    destruct (shift m1 m2 m3 d1 d2 d3 s M1 M2 M3 D) as (t & Ts & W1 & W2 & W3 & W).
    { intros D1 D2 D3. unfold s, da, db, ah, bh.
      rewrite (Z d1 d2 d3 D1 D2 D3 a a_nonneg Da), (Z d1 d2 d3 D1 D2 D3 b b_nonneg Db). ring. }
    { intros D1 D2 D3. unfold s, da, db, ah, bh.
      assert (A := Z (- d1) (- d2) (- d3) ltac:(lra) ltac:(lra) ltac:(lra) a a_nonneg ltac:(lra)).
      assert (B := Z (- d1) (- d2) (- d3) ltac:(lra) ltac:(lra) ltac:(lra) b b_nonneg ltac:(lra)).
      replace (d1 * (a y1 * h y1) + d2 * (a y2 * h y2) + d3 * (a y3 * h y3)) with 0 by lra.
      replace (d1 * (b y1 * h y1) + d2 * (b y2 * h y2) + d3 * (b y3 * h y3)) with 0 by lra. ring. }
    pose (moved := (m1 + t * d1, y1) :: (m2 + t * d2, y2) :: (m3 + t * d3, y3) :: l).
    assert (E : forall F, mix F moved = mix F all + t * (d1 * F y1 + d2 * F y2 + d3 * F y3))
      by (intros; unfold moved, all; simpl; ring).
    assert (Ea : mix a moved = mix a all) by (rewrite E, Da; ring).
    assert (Eb : mix b moved = mix b all) by (rewrite E, Db; ring).
    assert (Eah : mix ah moved = mix ah all + t * da) by (apply E).
    assert (Ebh : mix bh moved = mix bh all + t * db) by (apply E).
    assert (Fl : fine l) by (intros p Hp; apply F; unfold all; simpl; auto).
    assert (G : mix ah moved * mix b moved <= L * (mix bh moved * mix a moved)).
    { assert (Fine : forall x u y v, 0 <= x -> (u < k)%nat -> 0 <= y -> (v < k)%nat ->
        fine ((x, u) :: (y, v) :: l)).
      { intros x u y v Hx Hu Hy Hv p [<-|[<-|Hp]]; simpl; auto. }
      destruct W as [W|[W|W]].
      - assert (I := IH ((m2 + t * d2, y2) :: (m3 + t * d3, y3) :: l) ltac:(simpl; lia)
          ltac:(now apply Fine)). unfold moved. rewrite W. simpl in *.
          rewrite !Rmult_0_l, !Rplus_0_l.
        exact I.
      - assert (I := IH ((m1 + t * d1, y1) :: (m3 + t * d3, y3) :: l) ltac:(simpl; lia)
          ltac:(now apply Fine)). unfold moved. rewrite W. simpl in *.
          rewrite !Rmult_0_l, !Rplus_0_l.
        exact I.
      - assert (I := IH ((m1 + t * d1, y1) :: (m2 + t * d2, y2) :: l) ltac:(simpl; lia)
          ltac:(now apply Fine)). unfold moved. rewrite W. simpl in *.
          rewrite !Rmult_0_l, !Rplus_0_l.
        exact I. }
    rewrite Ea, Eb, Eah, Ebh in G. unfold s in Ts. lra.
Qed.

Theorem mixtures mu : (forall y, (y < k)%nat -> 0 <= mu y) ->
  sum k (fun y => mu y * (a y * h y)) * sum k (fun y => mu y * b y)
  <= L * (sum k (fun y => mu y * (b y * h y)) * sum k (fun y => mu y * a y)).
Proof.
  intros M.
  assert (E : forall F, sum k (fun y => mu y * F y) = mix F (map (fun y => (mu y, y)) (seq 0 k))).
  { intros F. clear. induction k as [|n IH]; [reflexivity|]. rewrite seq_S, map_app. simpl.
    rewrite IH. generalize (map (fun y => (mu y, y)) (seq 0 n)) as l.
    induction l as [|p l IL]; simpl; [ring|]. rewrite <- IL. ring. }
  change (sum k (fun y => mu y * ah y) * sum k (fun y => mu y * b y)
    <= L * (sum k (fun y => mu y * bh y) * sum k (fun y => mu y * a y))).
  rewrite !E. apply (mix_list k).
  - now rewrite map_length, seq_length.
  - intros p Hp. apply in_map_iff in Hp. destruct Hp as [y [<- Hy]]. apply in_seq in Hy.
    simpl. split; [apply M|]; lia.
Qed.
End mixtures.
