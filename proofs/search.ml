(* From the program of a certificate to the tables and flows that the checker checks.
   Nothing here is trusted: the checker refuses errors. Numbers are multiples of
   1 / one, one = 2^bits. *)

open Parse

exception Unproved of string
exception Open (* a period does not end at or below its start, in these numbers *)

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

type rows = { known : bool array; next : bool array; high : Z.t array array;
              low : Z.t array array; slack : Z.t }

(* Lemma 6: values of a node some steps away, and roots of its weights. *)
type mixed = { may : bool array; root_up : Z.t array array; root_down : Z.t array array }

let root_below a = Z.sqrt a
let root_above a = let r = Z.sqrt a in if Z.lt (Z.mul r r) a then Z.succ r else r

let heights n = Array.map (Array.map (fun g -> root_above (Z.mul g n.one)))

(* The least e for which the checker accepts Lemma 6, if there is one. *)
let by_mixture n (m : mixed) heights x y =
  let square a = Z.mul a a and k = Array.length m.may in
  let most = ref n.one and unbounded = ref false in
  for u = 0 to k - 1 do
    for v = 0 to k - 1 do
      let p = Z.mul m.root_up.(x).(u) m.root_up.(y).(v) in
      let q = Z.mul m.root_down.(y).(u) m.root_down.(x).(v) and s = heights.(u).(v) in
      if m.may.(u) && m.may.(v) && Z.gt p q then begin
        let cross = if Z.sign q > 0 then Some (up (Z.mul (square p) n.one) (square q)) else None in
        let both =
          if Z.sign s <= 0 then None
          else
            let a = Z.add (Z.mul q n.one) (Z.mul s p) in
            let b = Z.add (Z.mul s q) (Z.mul p n.one) in
            Some (up (Z.mul (square a) n.one) (square b)) in
        match cross, both with
        | Some a, Some b -> most := Z.max !most (Z.min a b)
        | Some a, None | None, Some a -> most := Z.max !most a
        | None, None -> unbounded := true
      end
    done
  done;
  if !unbounded then None else Some !most

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
      (* the rest of a wrong tree is paid in full, as in the other verifier *)
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

let listed proof k = function
  | None -> Hashtbl.create 1
  | Some i ->
    let lists = Option.value ~default:[] proof.lists in
    if i < 0 || i >= List.length lists then refuse "a step names witnesses that are not there";
    let found = Hashtbl.create 97 in
    let size, entries = List.nth lists i in
    if size <> k then refuse "a step names witnesses of other values";
    List.iter (fun (pair, w) -> Hashtbl.replace found pair w) entries;
    found

(* A table from the growth at the neighbour and at the node that Lemma 6 looks at. *)
let step n k rows mixed proof (step : step) near far between count : Checker.step * _ =
  let witnesses = listed proof k step.witnesses in
  let m = if step.power <> None && Z.sign between > 0 then mixed else None in
  let heights = if m = None then [||] else heights n far in
  let known x = rows.known <> [||] && rows.known.(x) in
  let entry x y =
    let trees = match Hashtbl.find_opt witnesses (x, y) with
      | Some Flows when known x && known y -> refuse "a tree has the parent of every state"
      | Some (Tree parents) when known x && known y ->
        (match by_tree n rows.high.(x) rows.low.(y) (arcs parents rows.next) near with
         | Some (e, flows) -> [(up (Z.mul e rows.slack) n.one, flows)]
         | None -> [])
      | _ -> [] in
    let mixtures = match m with
      | None -> []
      | Some m -> match by_mixture n m heights x y with
        | Some e -> [(up (Z.mul e between) n.one, Checker.Mixed)]
        | None -> [] in
    let better (e, w) (e', w') =
      if Z.sign e = 0 || Z.lt e' e then (e', w') else (e, w) in
    List.fold_left better (count, Checker.Count) (trees @ mixtures) in
  let both = Array.init k (fun x -> Array.init k (fun y ->
      if x = y then (n.one, Checker.Count) else entry x y)) in
  let e = Array.map (Array.map fst) both in
  { Checker.bound = table e; proofs = table (Array.map (Array.map snd) both);
    reach = Option.value ~default:Z.one step.power; heights = table heights }, e

(* -- a side --------------------------------------------------------------------------------- *)

(* The nodes on a side: distributions of the neighbour of one with so many nodes on
   this side, from a growth, and weights of one with so many and so far away; those of all nodes. *)
type views = {
  rows : int -> Z.t list list -> rows;
  all_rows : Z.t list list -> rows;
  mixed : int -> Z.t -> mixed option;
  all_mixed : Z.t -> mixed option
}

let power_of (s : step) = Option.value ~default:Z.one s.power

let early n k views proof (steps : step list) around =
  let rec go j growths = function
    | step' :: rest when Z.lt (Z.of_int j) around ->
      let power = power_of step' in
      if Z.gt power (Z.of_int (j + 1)) then
        refuse "no node is that far from one with fewer next to it";
      let p = Z.to_int power and near = List.hd growths in
      let s, e = step n k (views.rows j (table near)) (views.mixed (j + 1 - p) power) proof step'
          near (List.nth growths (p - 1)) (count n (Z.pred power)) (count n (Z.of_int (j + 1))) in
      (s, e) :: go (j + 1) (growth n e :: growths) rest
    | _ -> [] in
  go 0 [growth n (Array.make_matrix k k n.one)] steps

(* e^a of a stated bound; 0 if it is too large to be of use. *)
let stated n (a : Checker.q) =
  if Z.gt a.qnum (Z.mul (Z.of_int 20000) a.qden) then zero else exp_up n a.qnum a.qden

(* The table from which all other nodes start: no smaller than those of early nodes. *)
let begins n k early (start : Checker.q array array) all =
  let entry x y =
    if x = y then n.one
    else
      let most = List.fold_left (fun m (_, e) -> Z.max m e.(x).(y)) n.one early in
      let a = stated n start.(x).(y) in
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
  let e = Array.init k (fun x -> Array.init k (fun y -> if x = y then n.one else all)) in
  { Checker.bound = table e; proofs = table (Array.make_matrix k k Checker.Count); reach = Z.one;
    heights = [] }, e

let side n k views proof (s : Parse.side) around =
  let early = early n k views proof s.prefix around in
  let all = count n around in
  let side begin0 late =
    { Checker.early = List.map fst early; begin0; late; capped = Z.sign all > 0 } in
  let late, e = counted n k all in
  if Z.gt (Z.of_int (List.length early + 1)) around then side [] late
  else match s.start with
    | None -> side (table e) late
    | Some start ->
      let start, cycle = sized s start k 1 in
      let step' = List.hd cycle in
      let power = power_of step' in
      (* the nodes from which the step may lead, and the first, which has COUNT 0 *)
      let from = Z.sub (Z.of_int (List.length early)) power in
      let some = List.filteri (fun i _ -> Z.geq (Z.of_int i) from) early in
      let first = begins n k some start all in
      let near = growth n first in
      let late, _ = step n k (views.all_rows (table near)) (views.all_mixed power) proof step' near
          near (count n (Z.pred power)) all in
      side (table first) late

(* Tables of all phases, with the steps of a period in the order in which they are made. *)
let cycle n k rows phases proof (s : Parse.side) around =
  let all = count n around and period = List.length phases in
  if s.prefix <> [] then refuse "nodes have steps of their own only if one matrix serves all";
  let found = Array.make period (counted n k all) in
  (match s.start with
   | None -> ()
   | Some start ->
     let start, steps = sized s start k period in
     let first = begins n k [] start all in
     let near = ref first in
     List.iter2 (fun p step' ->
         if step'.power <> None then unproved "steps of Lemma 6 in a period";
         found.(p) <- step n k (rows p) None proof step' (growth n !near) [||] zero all;
         near := snd found.(p)) phases steps;
     Array.iteri (fun x row -> Array.iteri (fun y a ->
         let e = !near.(x).(y) in
         if Z.sign a > 0 && (Z.sign e = 0 || Z.gt e a) then raise Open) row) first);
  Array.to_list (Array.map fst found)

(* -- a chain -------------------------------------------------------------------------------- *)

let rows_of (r : Checker.rows) k = {
  known = Array.init k (fun x -> r.known (nat x)); next = Array.init k (fun x -> r.next (nat x));
  high = array r.high; low = array r.low; slack = r.slack }

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
  let late = { Checker.bound = []; proofs = []; reach = Z.one; heights = [] } in
  let side = { Checker.early = []; begin0 = []; late; capped = false } in
  { Checker.one = Z.one; halvings = Checker.O; stationary = []; order = []; sets = [];
    spreads = []; roots = []; ahead = side;
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

(* The values of the first nodes, those of all further ones last. *)
let sets_of (m : Checker.model) weights =
  let matrix = array (List.hd m.matrices) in
  let k = Array.length matrix in
  let positive (p : Checker.q) = Z.sign p.qnum > 0 in
  let next s = List.init k (fun y ->
      List.exists Fun.id (List.mapi (fun x here -> here && positive matrix.(x).(y)) s)) in
  match m.initial with
  | Checker.Any -> [List.init k (fun _ -> true)]
  | Checker.Stationary -> [List.map (fun v -> Z.sign v > 0) weights]
  | Checker.Given p ->
    let rec closed s = let s' = List.map2 (||) s (next s) in if s' = s then s else closed s' in
    let rec go before s =
      if List.length before > 10_000 then refuse "the values of nodes do not settle";
      if before <> [] && List.hd before = s then List.rev before
      else if List.mem s before then List.rev (closed s :: before) (* they alternate *)
      else go (s :: before) (next s) in
    go [] (List.map positive p)

(* The values of nodes can alternate; then the checker bounds all late ones together. *)
let alternates (m : Checker.model) =
  match m.initial, m.matrices with
  | Checker.Given p, [matrix] when List.compare_lengths p matrix = 0 ->
    let sets = sets_of m [] in
    List.length sets > 1 && List.mem (List.hd (List.rev sets)) (List.tl (List.rev sets)) = false
    && Array.exists (fun row -> Array.exists (fun (p : Checker.q) -> Z.sign p.qnum = 0) row)
         (array matrix)
  | _ -> false

(* -- Markov quilts -------------------------------------------------------------------------- *)

let of_quilts bits (a : Checker.claim) (m : Checker.model) l : Checker.hints =
  if List.length m.matrices <> 1 then unproved "Markov quilts of a periodic chain";
  let one = Z.shift_left Z.one bits and windows = Z.succ (Checker.others a) in
  let matrix = List.hd m.matrices in
  let k = List.length matrix and cost = Checker.cost a in
  let distance = Option.map (fun n ->
      if Z.sign n <= 0 then refuse "a quilt does not fit" else n) in
  let quilts = List.map (fun (from, upto, left, right) ->
      { Checker.from; upto; to_left = distance left; to_right = distance right; own = [];
        place = Checker.O }) l in
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
  let weights, order = match m.initial with
    | Checker.Stationary ->
      let pis, order = start [| array matrix |] in
      Array.to_list pis.(0), order
    | _ -> [], [] in
  let sets = sets_of m weights in
  let powers = Hashtbl.create 97 in
  let power n = match Hashtbl.find_opt powers n with
    | Some found -> found
    | None ->
      let r : Checker.rows = Checker.rows_after one (nat k) matrix n in
      let found = array r.high, array r.low in
      Hashtbl.add powers n found; found in
  (* the largest high(z) / low(z); 0 if there is none *)
  let most high low places =
    let rec go e = function
      | [] -> e
      | z :: rest ->
        if Z.sign (high z) = 0 then go e rest
        else if Z.sign (low z) = 0 then zero
        else go (Z.max e (up (Z.mul one (high z)) (low z))) rest in
    go Z.one places in
  let square entry = List.init k (fun x -> List.init k (fun y ->
    if x = y then one else entry x y)) in
  let every = List.init k Fun.id in
  let ahead n =
    let high, low = power n in
    { Checker.away = n; sources = [];
      ratios = square (fun x y -> most (fun z -> high.(x).(z)) (fun z -> low.(y).(z)) every) } in
  let past (n, sources) =
    let high, low = power n and places = List.filter (List.nth sources) every in
    { Checker.away = n; sources;
      ratios = square (fun x y -> most (fun z -> high.(z).(x)) (fun z -> low.(z).(y)) places) } in
  let clipped n = Z.to_int (Z.min n (Z.of_int (List.length sets - 1))) in
  let sources (s : Checker.quilt) n =
    let first = clipped (Z.pred (Z.sub s.from n)) and last = clipped (Z.pred (Z.sub s.upto n)) in
    List.fold_left (List.map2 (||)) (List.init k (fun _ -> false))
      (List.filteri (fun i _ -> first <= i && i <= last) sets) in
  let needed = List.sort_uniq compare (List.filter_map (fun (s : Checker.quilt) ->
      Option.map (fun n -> (n, sources s n)) s.to_left) quilts) in
  let place key =
    let rec go i = function [] -> 0 | k :: l -> if k = key then i else go (i + 1) l in
    go 0 needed in
  let owns = Hashtbl.create 97 in
  let own (s : Checker.quilt) =
    let single = Z.equal s.from s.upto and node = Z.pred s.from in
    let key = if m.initial = Checker.Stationary then (zero, true) else (node, single) in
    match Hashtbl.find_opt owns key with
    | Some found -> found
    | None ->
      let high, low = match m.initial with
        | Checker.Stationary -> let w = [| Array.of_list weights |] in w, w
        | Checker.Given _ when single ->
          let low, high = Checker.first_rows one m in
          let r : Checker.rows = Checker.rows_after one (nat k) matrix node in
          array (Checker.product up one (nat k) high r.high),
          array (Checker.product down one (nat k) low r.low)
        | _ -> power node in
      let places = List.init (Array.length high) Fun.id in
      let found = List.init k (fun x -> List.init k (fun y ->
          most (fun i -> high.(i).(y)) (fun i -> low.(i).(x)) places)) in
      Hashtbl.add owns key found; found in
  let quilts = List.map (fun (s : Checker.quilt) -> match s.to_left with
      | None -> s
      | Some n -> { s with Checker.own = own s; place = nat (place (n, sources s n)) }) quilts in
  let distances = List.filter_map (fun (s : Checker.quilt) -> s.to_right) quilts in
  { nothing with
    Checker.one; halvings = nat (bits / 2);
    stationary = if weights = [] then [] else [weights]; order; sets; quilts;
    quilts_ahead = List.map ahead (List.sort_uniq Z.compare distances);
    quilts_past = List.map past needed }

(* -- a chain with one matrix ---------------------------------------------------------------- *)

let of_chain bits (a : Checker.claim) (m : Checker.model) proof (forward : Parse.side)
    (backward : Parse.side) =
  let one = Z.shift_left Z.one bits and halvings = nat (bits / 2) in
  let cost = Checker.cost a and matrix = List.hd m.matrices in
  let k = List.length matrix and around = Checker.others a in
  let n = { one; halvings; c = Checker.exp_up one halvings cost.qnum cost.qden; cost } in
  let is_stationary = m.initial = Checker.Stationary in
  let listed (s : step) = s.witnesses <> None in
  let within = Z.to_int (Z.min around (Z.of_int (List.length backward.prefix))) in
  let early = List.exists listed (List.filteri (fun i _ -> i < within) backward.prefix) in
  let late = List.exists listed (Option.value ~default:[] backward.cycle) in
  (* the stationary distribution, if steps need it *)
  let weights, order =
    if is_stationary then
      let pis, order = start [| array matrix |] in
      Array.to_list pis.(0), order
    else if late || (m.initial = Checker.Any && early) then
      match stationary (array matrix) with
      | Some v when Array.for_all (fun w -> Z.sign w > 0) v -> Array.to_list v, []
      | _ -> [], []
    else [], [] in
  let sets = sets_of m weights in
  let r = Checker.forward_rows one matrix in
  let b = Checker.backward_rows one (nat k) matrix weights weights in
  let given = match m.initial with Checker.Given _ -> true | _ -> false in
  let size = if is_stationary || not (late || early) then 0 else within + 1 in
  let first_low, first_high = Checker.first_rows one m in
  let nodes = Checker.nodes one (nat k) r first_low first_high (nat size) in
  let pi = Array.of_list weights in
  let of_row lo hi =
    let lo = Array.of_list lo and hi = Array.of_list hi and most = ref one in
    if Array.exists (fun p -> Z.sign p <= 0) lo then None
    else begin
      for x = 0 to k - 1 do
        for y = 0 to k - 1 do
          most := Z.max !most (up (Z.mul (Z.mul hi.(x) pi.(y)) one) (Z.mul lo.(y) pi.(x)))
        done
      done;
      Some !most
    end in
  let spread i (low, high) =
    if weights = [] || (given && i < within) then zero
    else
      let every = List.map2 of_row low high in
      if List.mem None every then zero
      else List.fold_left (fun d e -> Z.max d (Option.get e)) one every in
  let spreads = List.mapi spread nodes in
  let spread i = Option.value ~default:zero (List.nth_opt spreads i) in
  let none = { known = [||]; next = [||]; high = [||]; low = [||]; slack = zero } in
  let near d d' g =
    if Z.sign d = 0 || Z.sign d' = 0 then none
    else rows_of (Checker.near_rows one (nat k) b d d' g) k in
  let roots = Hashtbl.create 97 in
  let root power = match Hashtbl.find_opt roots power with
    | Some found -> found
    | None ->
      let p : Checker.rows = Checker.rows_after one (nat k) matrix power in
      let of_table root t = Array.map (Array.map (fun v -> root (Z.mul v one))) (array t) in
      let found = of_table root_above p.high, of_table root_below p.low in
      Hashtbl.add roots power found; found in
  let turned t = Array.init k (fun x -> Array.init k (fun z -> t.(z).(x))) in
  let set_at i = Array.of_list (List.nth sets (min i (List.length sets - 1))) in
  let union = Array.init k (fun x -> List.exists (fun s -> List.nth s x) sets) in
  let ahead_mixed power =
    let root_up, root_down = root power in
    Some { may = Array.make k true; root_up; root_down } in
  let past_mixed may power =
    let up, down = root power in
    Some { may; root_up = turned up; root_down = turned down } in
  let r = rows_of r k and stationary_rows = rows_of b k in
  let ahead = side n k {
      rows = (fun _ _ -> r); all_rows = (fun _ -> r);
      mixed = (fun _ -> ahead_mixed); all_mixed = ahead_mixed } proof forward around in
  let past = side n k {
      rows = (fun i g -> match m.initial with
          | Checker.Stationary -> stationary_rows
          | Checker.Given _ when i + 1 < size ->
            rows_of (Checker.given_rows one (nat k) matrix nodes (nat i)) k
          | Checker.Given _ -> none
          | Checker.Any -> near (spread i) (spread (i + 1)) g);
      all_rows = (fun g ->
          if is_stationary then stationary_rows else near (spread within) (spread within) g);
      mixed = (fun i -> past_mixed (set_at i)); all_mixed = past_mixed union }
      proof backward around in
  let roots = Hashtbl.fold (fun power (up, down) l ->
    (power, (table up, table down)) :: l) roots [] in
  { nothing with Checker.one; halvings; order; sets; spreads; roots; ahead; past;
                 stationary = if weights = [] then [] else [weights] }

let of_period bits (a : Checker.claim) (m : Checker.model) proof forward backward =
  if m.initial <> Checker.Stationary then unproved "a periodic chain whose start is not stationary";
  let one = Z.shift_left Z.one bits and halvings = nat (bits / 2) in
  let cost = Checker.cost a and around = Checker.others a in
  let n = { one; halvings; c = Checker.exp_up one halvings cost.qnum cost.qden; cost } in
  let period = List.length m.matrices and k = List.length (List.hd m.matrices) in
  let rows = Array.of_list m.matrices in
  let pis, order = start (Array.map array rows) in
  let weights p = Array.to_list pis.(p) in
  let ahead = Array.map (fun rows -> rows_of (Checker.forward_rows one rows) k) rows in
  let past = Array.init period (fun p ->
      let q = (p + period - 1) mod period in
      rows_of (Checker.backward_rows one (nat k) rows.(q) (weights q) (weights p)) k) in
  let phases = List.init period Fun.id in
  { nothing with
    Checker.one; halvings; stationary = List.init period weights; order;
    cycle_ahead = cycle n k (fun p -> ahead.(p)) (List.rev phases) proof forward around;
    cycle_past = cycle n k (fun p -> past.(p)) (List.tl phases @ [0]) proof backward around;
    capped_cycle = Z.sign (count n around) > 0 }

let hints bits (a : Checker.claim) (m : Checker.model) proof : Checker.hints option =
  match proof.quilts, proof.forward, proof.backward with
  | Some l, _, _ -> Some (of_quilts bits a m l)
  | None, Some forward, Some backward when Z.sign (Checker.others a) > 0 ->
    let find = if List.length m.matrices = 1 then of_chain else of_period in
    Some (find bits a m proof forward backward)
  | _ -> None

(* -- mixing families ------------------------------------------------------------------------ *)

(* Bounds of nodes with 0, 1, ... nodes on a side; none if they soon exceed epsilon. *)
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
