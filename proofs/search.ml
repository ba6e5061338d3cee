(* From the program of a certificate to the tables and flows that the checker checks.
   Nothing here is trusted: what is wrong makes the checker refuse. Numbers are multiples of
   1 / one, one = 2^bits. *)

open Parse

exception Unproved of string
exception Open (* a period does not end at or below where it starts, in these numbers *)

let unproved text = raise (Unproved text)

let rec nat n = if n <= 0 then Checker.O else Checker.S (nat (n - 1))
let nats = Array.init 65 nat
let nat n = if n < 65 then nats.(n) else nat n
let rec int = function Checker.O -> 0 | Checker.S n -> 1 + int n

let down a b = Z.fdiv a b
let up a b = Z.cdiv a b
let table m = Array.to_list (Array.map Array.to_list m)
let array l = Array.of_list (List.map Array.of_list l)

type numbers = { one : Z.t; halvings : Checker.nat; c : Z.t; cost : Checker.q }

let exp_up n a d = Checker.exp_up n.one n.halvings a d
let zero = Z.zero

(* COUNT; 0 where e^(records c) has too many digits to be of use. *)
let count n records =
  let a = Z.mul records n.cost.qnum in
  if Z.gt a (Z.mul (Z.of_int 20000) n.cost.qden) then zero else exp_up n a n.cost.qden

(* -- stationary weights, exact ------------------------------------------------------------- *)

(* A vector with v M = v, by elimination without fractions; None if it is not unique. *)
let stationary (m : Checker.q array array) : Z.t array option =
  let k = Array.length m in
  (* rows as integers: v_z / common_z is sought *)
  let common = Array.map (Array.fold_left (fun d (p : Checker.q) -> Z.lcm d p.qden) Z.one) m in
  let a = Array.init k (fun x -> Array.init k (fun z ->
      let p = m.(z).(x) in
      Z.sub (Z.divexact (Z.mul p.qnum common.(z)) p.qden) (if x = z then common.(z) else zero))) in
  let columns = Array.init k Fun.id in
  let rec eliminate s last =
    if s = k - 1 then Some last
    else begin
      (* the pivot: any entry that is not 0 *)
      let found = ref None in
      for i = s to k - 1 do
        for j = s to k - 1 do
          if !found = None && Z.sign a.(i).(j) <> 0 then found := Some (i, j)
        done
      done;
      match !found with
      | None -> None
      | Some (i, j) ->
        let row = a.(i) in
        a.(i) <- a.(s); a.(s) <- row;
        if j <> s then begin
          Array.iter (fun r -> let t = r.(j) in r.(j) <- r.(s); r.(s) <- t) a;
          let t = columns.(j) in columns.(j) <- columns.(s); columns.(s) <- t
        end;
        let pivot = row.(s) in
        Array.iteri (fun i r ->
            if i <> s then begin
              let f = r.(s) in
              for j = s + 1 to k - 1 do
                r.(j) <- Z.divexact (Z.sub (Z.mul pivot r.(j)) (Z.mul f row.(j))) last
              done;
              r.(s) <- zero
            end) a;
        eliminate (s + 1) pivot
    end in
  match eliminate 0 Z.one with
  | None -> None
  | Some d ->
    let found = Array.make k zero in
    found.(columns.(k - 1)) <- d;
    for s = 0 to k - 2 do found.(columns.(s)) <- Z.neg a.(s).(k - 1) done;
    let found = Array.map2 Z.mul common found in
    Some (if Array.exists (fun v -> Z.sign v < 0) found then Array.map Z.neg found else found)

(* Those of all phases, up to one factor: the first for a whole period, then step by step. *)
let of_phases (matrices : Checker.q array array array) =
  let k = Array.length matrices.(0) in
  let common = Array.map
      (Array.fold_left (Array.fold_left (fun d (p : Checker.q) ->
        Z.lcm d p.qden)) Z.one) matrices in
  let whole = Array.map2 (fun m d ->
      Array.map (Array.map (fun (p : Checker.q) -> Z.divexact (Z.mul p.qnum d) p.qden)) m)
      matrices common in
  let times a m = Array.init k (fun y ->
      let s = ref zero in
      Array.iteri (fun z p -> s := Z.add !s (Z.mul p m.(z).(y))) a; !s) in
  let n = Array.length matrices in
  let product = Array.map (fun row ->
      Array.fold_left times row (Array.sub whole 1 (n - 1))) whole.(0) in
  let den = Array.fold_left Z.mul Z.one common in
  let reduced p = let g = Z.gcd p den in
    { Checker.qnum = Z.divexact p g; qden = Z.divexact den g } in
  match stationary (Array.map (Array.map reduced) product) with
  | None -> None
  | Some first ->
    let found = Array.make n first in
    for p = 1 to n - 1 do found.(p) <- times found.(p - 1) whole.(p - 1) done;
    let rest = ref den in
    Some (Array.mapi (fun p v ->
        if p > 0 then rest := Z.divexact !rest common.(p - 1);
        Array.map (Z.mul !rest) v) found)

(* All values of all phases, from a root on against the steps. *)
let order (matrices : Checker.q array array array) root =
  let n = Array.length matrices and k = Array.length matrices.(0) in
  let seen = Array.make_matrix n k false in
  let queue = Queue.create () and found = ref [] in
  let visit p x = if not seen.(p).(x) then (seen.(p).(x) <- true; Queue.add (p, x) queue) in
  visit 0 root;
  while not (Queue.is_empty queue) do
    let p, x = Queue.pop queue in
    found := (nat p, nat x) :: !found;
    let q = (p + n - 1) mod n in
    Array.iteri (fun z row -> if Z.sign row.(x).Checker.qnum > 0 then visit q z) matrices.(q)
  done;
  List.rev !found

(* -- STEP ---------------------------------------------------------------------------------- *)

type rows = { can : bool array; next : bool array; high : Z.t array array; low : Z.t array array }

(* The arcs of a tree of the values that the neighbour can have, parents first. *)
let arcs parents (next : bool array) =
  let k = Array.length next in
  if Array.length parents <> k then refuse "a tree has the parent of every state";
  let children = Hashtbl.create 97 in
  for v = k - 1 downto 0 do
    let a = abs parents.(v) - 1 in
    Hashtbl.replace children a (v :: Option.value ~default:[] (Hashtbl.find_opt children a))
  done;
  let of_place a = Option.value ~default:[] (Hashtbl.find_opt children a) in
  let queue = Queue.create () in
  (match of_place (-1) with root :: _ -> Queue.add root queue | [] -> ());
  let line = ref [] in
  while not (Queue.is_empty queue) do
    let v = Queue.pop queue in
    line := v :: !line;
    List.iter (fun w -> Queue.add w queue) (of_place v)
  done;
  let line = List.rev !line in
  if List.length line <> k then refuse "a tree has one root, and the others lead to it";
  let root = List.find (fun v -> next.(v)) line in
  let above = Array.make (k + 1) root in
  let found = List.filter_map (fun v ->
      let a = if parents.(v) = 0 then root else above.(abs parents.(v) - 1) in
      above.(v) <- (if next.(v) then v else a);
      if next.(v) && v <> root then Some (v, a, parents.(v) > 0) else None) line in
  (root, found)

(* A table entry and its flows, or none. *)
let by_tree n (high : Z.t array) (low : Z.t array) (root, arcs) (growth : Z.t array array) =
  let k = Array.length high in
  let h = Array.make k n.one in
  if List.exists (fun (v, a, leads) ->
      Z.sign (if leads then growth.(v).(a) else growth.(a).(v)) <= 0) arcs then None
  else begin
    List.iter (fun (v, a, leads) ->
        h.(v) <- if leads then down (Z.mul h.(a) growth.(v).(a)) n.one
          else down (Z.mul h.(a) n.one) growth.(a).(v)) arcs;
    let values = root :: List.map (fun (v, _, _) -> v) arcs in
    let dot p = List.fold_left (fun s v -> Z.add s (Z.mul p.(v) h.(v))) zero values in
    let above = dot high and below = dot low in
    if Z.sign below <= 0 then None
    else begin
      let e = ref (up (Z.mul above n.one) below) in
      let net = Array.map (Z.mul n.one) high and flows = ref [] in
      let rest v = Z.sub net.(v) (Z.mul !e low.(v)) in
      let move z y g =
        if Z.sign g > 0 then begin
          flows := ((nat z, nat y), g) :: !flows;
          net.(z) <- Z.sub net.(z) (Z.mul g n.one);
          net.(y) <- Z.add net.(y) (Z.mul g growth.(z).(y))
        end in
      let clipped = ref false in
      List.iter (fun (v, a, leads) ->
          if Z.sign (rest v) * (if leads then 1 else -1) < 0 then clipped := true;
          if leads then move v a (up (rest v) n.one)
          else move a v (down (Z.neg (rest v)) growth.(a).(v))) (List.rev arcs);
      let store = List.fold_left (fun best v ->
          if Z.gt (Z.mul low.(v) h.(v)) (Z.mul low.(best) h.(best)) then v else best)
          root values in
      (* what a wrong tree leaves over is paid in full, as in the other verifier *)
      if !clipped && Z.sign low.(store) > 0 then
        e := List.fold_left (fun sum y ->
            let g = if y = store then n.one else growth.(y).(store) in
            Z.add sum (up (Z.mul (Z.max zero (rest y)) g) (Z.mul low.(store) n.one))) !e values;
      List.iter (fun v ->
          if v <> store && Z.sign (rest v) > 0 && Z.sign growth.(v).(store) > 0 then
            move v store (up (rest v) n.one)) values;
      List.iter (fun v ->
          if Z.sign low.(v) > 0 then e := Z.max !e (up net.(v) low.(v))) values;
      if List.exists (fun v -> Z.sign (rest v) > 0) values then None
      else Some (Z.max !e n.one, Checker.Flows (List.rev !flows))
    end
  end

let growth n e = Array.map (Array.map (fun e -> up (Z.mul n.c e) n.one)) e

let listed proof = function
  | None -> Hashtbl.create 1
  | Some i ->
    let lists = Option.value ~default:[] proof.lists in
    if i < 0 || i >= List.length lists then refuse "a step names witnesses that are not there";
    let found = Hashtbl.create 97 in
    List.iter (fun (pair, w) -> Hashtbl.replace found pair w) (List.nth lists i);
    found

let step n k rows proof (step : step) near count =
  if step.power <> None then unproved "steps under any distribution";
  let witnesses = listed proof step.witnesses in
  let entry x y =
    if not (rows.can.(x) && rows.can.(y)) then (zero, Checker.Count)
    else if x = y then (n.one, Checker.Count)
    else match Hashtbl.find_opt witnesses (x, y) with
      | None -> (count, Checker.Count)
      | Some (Flows _) -> refuse "a tree has the parent of every state"
      | Some (Tree parents) ->
        match by_tree n rows.high.(x) rows.low.(y) (arcs parents rows.next) near with
        | Some (e, flows) when Z.sign count = 0 || Z.lt e count -> (e, flows)
        | _ -> (count, Checker.Count) in
  let both = Array.init k (fun x -> Array.init k (entry x)) in
  (Array.map (Array.map fst) both, Array.map (Array.map snd) both)

(* -- a side --------------------------------------------------------------------------------- *)

let early n k rows proof (steps : step list) around =
  let rec go j growths near = function
    | step :: rest when Z.lt (Z.of_int j) around ->
      (match step.power with
       | Some power when Z.gt power (Z.of_int (j + 1)) ->
         refuse "no node is that far from one with fewer beside it"
       | _ -> ());
      let e, w = step_of j near step in
      (e, w) :: go (j + 1) growths (growth n e) rest
    | _ -> []
  and step_of j near s = step n k (rows j) proof s near (count n (Z.of_int (j + 1))) in
  let ones = Array.make_matrix k k n.one in
  go 0 [] (growth n ones) steps

(* e^a of a stated bound; 0 if it is too large to be of use. *)
let stated n (a : Checker.q) =
  if Z.gt a.qnum (Z.mul (Z.of_int 20000) a.qden) then zero else exp_up n a.qnum a.qden

(* The table from which all other nodes start: no smaller than those of early nodes. *)
let begins n k (can : bool array) early (start : Checker.q array array) around all =
  let entry x y =
    let a = start.(x).(y) in
    if x = y then n.one
    else if not (can.(x) && can.(y)) then begin
      (* values that a node cannot have are at the cap *)
      if Z.lt (Z.mul a.qnum n.cost.qden) (Z.mul (Z.mul around n.cost.qnum) a.qden) then
        refuse "a period does not end at or below where it starts";
      zero
    end
    else
      let most = List.fold_left (fun m (e, _) -> Z.max m e.(x).(y)) n.one early in
      let a = stated n a in
      let a = if Z.sign a = 0 then all else Z.max a most in
      if Z.sign all = 0 then a else Z.min a all in
  Array.init k (fun x -> Array.init k (entry x))

let sized (s : Parse.side) start k period =
  let cycle = Option.value ~default:[] s.cycle in
  if List.length start <> k || List.length cycle <> period then
    refuse "a cycle has a start, and a step for each phase";
  (array start, cycle)

(* COUNT at all nodes. *)
let counted n k all =
  (Array.init k (fun x -> Array.init k (fun y -> if x = y then n.one else all)),
   Array.make_matrix k k Checker.Count)

let side n k rows late proof (s : Parse.side) around =
  let early = early n k rows proof s.prefix around in
  let all = count n around in
  let side start e w = {
    Checker.early = List.map (fun (e, w) -> (table e, table w)) early;
    begin0 = table start; rest = table e; proof = table w; capped = Z.sign all > 0 } in
  if Z.gt (Z.of_int (List.length early + 1)) around then side [||] [||] [||]
  else match s.start with
    | None -> let e, w = counted n k all in side e e w
    | Some start ->
      let start, cycle = sized s start k 1 in
      let first = begins n k late.can early start around all in
      let e, w = step n k late proof (List.hd cycle) (growth n first) all in
      side first e w

(* Tables of all phases, with the steps of a period in the order in which they are made. *)
let cycle n k rows phases proof (s : Parse.side) around =
  let all = count n around and period = List.length phases in
  if s.prefix <> [] then refuse "nodes have steps of their own only where one matrix serves all";
  let found = Array.make period (counted n k all) in
  (match s.start with
   | None -> ()
   | Some start ->
     let start, steps = sized s start k period in
     let first = begins n k (rows 0).can [] start around all in
     let near = ref first in
     List.iter2 (fun p step' ->
         found.(p) <- step n k (rows p) proof step' (growth n !near) all;
         near := fst found.(p)) phases steps;
     Array.iteri (fun x row -> Array.iteri (fun y a ->
         let e = !near.(x).(y) in
         if Z.sign a > 0 && (Z.sign e = 0 || Z.gt e a) then raise Open) row) first);
  Array.to_list (Array.map (fun (e, w) -> (table e, table w)) found)

(* -- a chain -------------------------------------------------------------------------------- *)

let rows_of (r : Checker.rows) k next = {
  can = Array.init k (fun x -> r.can (nat x)); next; high = array r.high; low = array r.low }

(* Can the last record of a window have less values than it has whatever the first one is? *)
let first_matters (a : Checker.claim) (m : Checker.model) =
  let steps = Z.pred (Checker.hidden a) and matrix = array (List.hd m.matrices) in
  let k = Array.length matrix in
  let times a b = Array.init k (fun x -> Array.init k (fun y ->
      let rec some z = z < k && ((a.(x).(z) && b.(z).(y)) || some (z + 1)) in some 0)) in
  let rec power n =
    if Z.equal n Z.one then Array.map (Array.map (fun (p : Checker.q) -> Z.sign p.qnum > 0)) matrix
    else
      let half = power (Z.shift_right n 1) in
      let twice = times half half in
      if Z.is_odd n then times twice (power Z.one) else twice in
  Z.sign steps > 0 && List.length m.matrices = 1
  && let reached = power steps in
  Array.exists (fun row -> row <> reached.(0)) reached

let nothing : Checker.hints =
  let side = { Checker.early = []; begin0 = []; rest = []; proof = []; capped = false } in
  { Checker.one = Z.one; halvings = Checker.O; stationary = []; order = []; ahead = side;
    past = side; cycle_ahead = []; cycle_past = []; capped_cycle = false; quilts = [];
    quilts_ahead = []; quilts_past = [] }

(* Stationary weights, and how all values lead to one. *)
let start matrices =
  match if Array.length matrices = 1 then Option.map (fun v -> [| v |]) (stationary matrices.(0))
    else of_phases matrices with
  | None -> refuse "the stationary distribution is not unique"
  | Some pis ->
    let root = ref 0 in
    Array.iteri (fun x v -> if Z.gt v pis.(0).(!root) then root := x) pis.(0);
    (pis, order matrices !root)

(* -- Markov quilts -------------------------------------------------------------------------- *)

let of_quilts bits (a : Checker.claim) (m : Checker.model) l : Checker.hints =
  if m.initial <> Checker.Stationary || List.length m.matrices <> 1 then
    unproved "Markov quilts of a start that is not stationary";
  let one = Z.shift_left Z.one bits and windows = Z.succ (Checker.others a) in
  let rows = List.hd m.matrices in
  let k = List.length rows and cost = Checker.cost a in
  let distance = Option.map (fun n ->
      if Z.sign n <= 0 then refuse "a quilt does not fit" else n) in
  let quilts = List.map (fun (from, upto, left, right) ->
      { Checker.from; upto; to_left = distance left; to_right = distance right }) l in
  if l = [] || not (Checker.covering zero windows quilts) then
    refuse "the quilts do not fit, or do not cover all nodes";
  let records (s : Checker.quilt) =
    let side far = function None -> far | Some n -> Z.pred n in
    Z.add (Checker.hidden a)
      (Z.add (side (Z.sub windows s.from) s.to_right) (side (Z.pred s.upto) s.to_left)) in
  let dear s = Z.gt (Z.mul (Z.mul (records s) cost.qnum) a.epsilon.qden)
      (Z.mul a.epsilon.qnum cost.qden) in
  if (not (Checker.group_ok a)) && List.exists dear quilts then
    refuse "the records around a node reveal too much";
  let pis, order = start [| array rows |] in
  let weights = Array.to_list pis.(0) in
  let table rows n =
    let r : Checker.rows = rows n in
    let high = array r.high and low = array r.low in
    let can = Array.init k (fun x -> r.can (nat x)) in
    let ratio x y =
      if x = y && can.(x) then one
      else if not (can.(x) && can.(y)) then zero
      else
        let rec most e z =
          if z = k then e
          else if Z.sign high.(x).(z) = 0 then most e (z + 1)
          else if Z.sign low.(y).(z) = 0 then zero
          else most (Z.max e (up (Z.mul one high.(x).(z)) low.(y).(z))) (z + 1) in
        most one 0 in
    (n, List.init k (fun x -> List.init k (ratio x))) in
  let distances of_quilt = List.sort_uniq Z.compare (List.filter_map of_quilt quilts) in
  { nothing with
    Checker.one; halvings = nat (bits / 2); stationary = [weights]; order; quilts;
    quilts_ahead = List.map (table (Checker.rows_after one (nat k) rows))
        (distances (fun s -> s.Checker.to_right));
    quilts_past = List.map (table (Checker.rows_before one (nat k) rows weights))
        (distances (fun s -> s.Checker.to_left)) }

let hints bits (a : Checker.claim) (m : Checker.model) proof : Checker.hints option =
  let one = Z.shift_left Z.one bits and halvings = nat (bits / 2) in
  let cost = Checker.cost a in
  let windows = Z.succ (Checker.others a) in
  match proof.quilts with Some l -> Some (of_quilts bits a m l) | None ->
  match proof.forward, proof.backward with
  | Some forward, Some backward when Z.gt windows Z.one ->
    if m.initial <> Checker.Stationary then unproved "a start that is not stationary";
    let period = List.length m.matrices and k = List.length (List.hd m.matrices) in
    let rows = Array.of_list m.matrices in
    let matrices = Array.map array rows in
    let pis, order = start matrices in
    let c = Checker.exp_up one halvings cost.qnum cost.qden in
    let n = { one; halvings; c; cost } in
    let weights p = Array.to_list pis.(p) in
    let ahead = Array.map (fun rows ->
        rows_of (Checker.forward_rows one rows) k (Array.make k true)) rows in
    let past = Array.init period (fun p ->
        let q = (p + period - 1) mod period in
        rows_of (Checker.backward_rows one (nat k) rows.(q) (weights q) (weights p)) k
          (Array.map (fun v -> Z.sign v > 0) pis.(q))) in
    let around = Checker.others a in
    let found = { nothing with
                  Checker.one; halvings; stationary = List.init period weights;
                  order } in
    if period = 1 then
      Some { found with
             ahead = side n k (fun _ -> ahead.(0)) ahead.(0) proof forward around;
             past = side n k (fun _ -> past.(0)) past.(0) proof backward around }
    else
      let forwards = List.init period Fun.id in
      Some { found with
             cycle_ahead =
               cycle n k (fun p -> ahead.(p)) (List.rev forwards) proof forward around;
             cycle_past =
               cycle n k (fun p -> past.(p)) (List.tl forwards @ [0]) proof backward around;
             capped_cycle = Z.sign (count n around) > 0 }
  | _ -> None

(* -- mixing families ------------------------------------------------------------------------ *)

(* Bounds of nodes with 0, 1, ... nodes on a side; none where they soon exceed epsilon. *)
let mixing_hints bits (a : Checker.claim) (m : Checker.mixing) =
  let h = { nothing with Checker.one = Z.shift_left Z.one bits; halvings = nat (bits / 2) } in
  let cost = Checker.cost a and around = Checker.others a in
  let bound = Z.add (Z.mul a.epsilon.qnum (Z.of_int 2)) a.epsilon.qden in
  let dear = Z.gt (Z.mul (Z.mul (Z.pred m.apart) cost.qnum) a.epsilon.qden)
      (Z.mul bound cost.qden) in
  if Z.gt around (Z.of_int 2_000_000) then unproved "mixing families in segments that long";
  if dear then (h, [])
  else begin
    let e_to n = Checker.exp_of h n cost in
    let c = e_to Z.one and cm = e_to m.apart and cm1 = e_to (Z.pred m.apart) in
    let limit = exp_up { one = h.one; halvings = h.halvings; c; cost } bound a.epsilon.qden in
    let around = Z.to_int around in
    let apart = if Z.fits_int m.apart then Z.to_int m.apart else max_int in
    let num = m.overlap.qnum and den = m.overlap.qden in
    let e = Array.make (around + 1) h.one in
    try
      for n = 1 to around do
        let next =
          if n < apart then up (Z.mul c e.(n - 1)) h.one
          else up (Z.add (Z.mul (Z.mul num cm1) h.one)
                     (Z.mul (Z.mul (Z.sub den num) cm) e.(n - apart))) (Z.mul h.one den) in
        e.(n) <- Z.max next e.(n - 1);
        if Z.gt e.(n) limit then raise Exit
      done;
      (h, Array.to_list e)
    with Exit -> (h, [])
  end
