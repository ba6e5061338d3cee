(* From the JSON text of a certificate to its claim, as Claims.v defines claims, and its proofs.
   Trusted: the claim that this reads is the one that is checked. Anything else than the format is
   refused. *)

exception Refused of string

let refuse text = raise (Refused text)

(* -- JSON --------------------------------------------------------------------------------- *)

type json =
  | Null
  | Int of Z.t
  | Text of string
  | List of json list
  | Object of (string * json) list
  | Other (* true, false, numbers with a point: nowhere in a certificate *)

let read_json (s : string) : json =
  let n = String.length s and at = ref 0 in
  let bad () = refuse (Printf.sprintf "the file is not JSON (byte %d)" !at) in
  let peek () = if !at < n then s.[!at] else '\000' in
  let next () = if !at >= n then bad () else (incr at; s.[!at - 1]) in
  let rec skip () =
    match peek () with ' ' | '\t' | '\n' | '\r' when !at < n -> incr at; skip () | _ -> () in
  let expect c = if next () <> c then bad () in
  let word w = String.iter expect w in
  let hexadecimal () =
    let digit c = match c with
      | '0' .. '9' -> Char.code c - 48
      | 'a' .. 'f' -> Char.code c - 87
      | 'A' .. 'F' -> Char.code c - 55
      | _ -> bad () in
    let a = digit (next ()) in let b = digit (next ()) in
    let c = digit (next ()) in let d = digit (next ()) in
    (((a * 16) + b) * 16 + c) * 16 + d in
  let text () =
    expect '"';
    let b = Buffer.create 24 in
    let rec go () =
      match next () with
      | '"' -> Buffer.contents b
      | '\\' ->
        (match next () with
         | ('"' | '\\' | '/') as c -> Buffer.add_char b c
         | 'b' -> Buffer.add_char b '\b'
         | 'f' -> Buffer.add_char b '\012'
         | 'n' -> Buffer.add_char b '\n'
         | 'r' -> Buffer.add_char b '\r'
         | 't' -> Buffer.add_char b '\t'
         | 'u' ->
           let code = hexadecimal () in
           Buffer.add_char b (if code < 128 then Char.chr code else '\255')
         | _ -> bad ());
        go ()
      | c when c < ' ' -> bad ()
      | c -> Buffer.add_char b c; go () in
    go () in
  let digits () =
    let start = !at in
    while (match peek () with '0' .. '9' -> !at < n | _ -> false) do incr at done;
    if !at = start then bad ();
    String.sub s start (!at - start) in
  let number () =
    let negative = peek () = '-' in
    if negative then incr at;
    let whole = digits () in
    if String.length whole > 1 && whole.[0] = '0' then bad ();
    let exact = ref true in
    if peek () = '.' then (exact := false; incr at; ignore (digits ()));
    (match peek () with
     | 'e' | 'E' ->
       exact := false; incr at;
       (match peek () with '+' | '-' -> incr at | _ -> ());
       ignore (digits ())
     | _ -> ());
    if !exact then (if String.length whole > 4000 then bad ();
                    let z = Z.of_string whole in Int (if negative then Z.neg z else z))
    else Other in
  let rec value depth =
    if depth > 500 then refuse "the certificate is nested too deeply";
    skip ();
    let found = match peek () with
      | '"' -> Text (text ())
      | '[' -> incr at; List (items depth)
      | '{' -> incr at; Object (members depth)
      | 't' -> word "true"; Other
      | 'f' -> word "false"; Other
      | 'n' -> word "null"; Null
      | _ -> number () in
    skip (); found
  and items depth =
    skip ();
    if peek () = ']' then (incr at; [])
    else
      let rec go found =
        let found = value (depth + 1) :: found in
        match next () with ',' -> go found | ']' -> List.rev found | _ -> bad () in
      go []
  and members depth =
    skip ();
    if peek () = '}' then (incr at; [])
    else
      let rec go found =
        skip ();
        let key = text () in
        if List.mem_assoc key found then refuse "a key is given twice in one object";
        skip (); expect ':';
        let found = (key, value (depth + 1)) :: found in
        match next () with ',' -> go found | '}' -> List.rev found | _ -> bad () in
      go [] in
  let found = value 0 in
  if !at < n then bad ();
  found

(* -- fields ------------------------------------------------------------------------------- *)

let kind = function
  | Null -> "null" | Int _ -> "an integer" | Text _ -> "a string" | List _ -> "a list"
  | Object _ -> "an object" | Other -> "no value of a certificate"

let wrong where value = refuse (where ^ " is " ^ kind value)
let list each where = function List l -> List.map (each where) l | v -> wrong where v
let text where = function Text t -> t | v -> wrong where v

let integer where = function
  | Int z when Z.leq (Z.abs z) (Z.shift_left Z.one 62) -> z
  | v -> wrong where v

let positive where v =
  let z = integer where v in
  if Z.sign z > 0 then z else refuse (where ^ " is not positive")

let small where v =
  let z = integer where v in
  if Z.fits_int z then Z.to_int z else refuse (where ^ " is too large")

let option each where = function Null -> None | v -> Some (each where v)

(* The fields of an object, which has no others; those named in [may] can be missing. *)
let fields where must may = function
  | Object l ->
    List.iter (fun (key, _) ->
        if not (List.mem key must || List.mem key may) then
          refuse (where ^ " has the unknown key " ^ key)) l;
    List.iter (fun key ->
        if not (List.mem_assoc key l) then refuse (where ^ " lacks the key " ^ key)) must;
    fun key -> (match List.assoc_opt key l with Some v -> v | None -> Null)
  | v -> wrong where v

let has key = function Object l -> List.mem_assoc key l | _ -> false

(* A number: digits, "." and digits, a power of ten; or a fraction. *)
let number where value : Checker.q =
  let s = text where value in
  let bad () = refuse (where ^ " is not a number such as \"0.25\" or \"1/3\"") in
  let all = String.for_all (fun c -> '0' <= c && c <= '9') in
  let digits t = if t = "" || String.length t > 1200 || not (all t) then bad () else t in
  let q num den = { Checker.qnum = num; qden = den } in
  let ten n = Z.pow (Z.of_int 10) n in
  match String.index_opt s '/' with
  | Some i ->
    let num = digits (String.sub s 0 i) and den = String.sub s (i + 1) (String.length s - i - 1) in
    let den = Z.of_string (if den = "" || not (all den) || String.length den > 2400 then bad ()
                           else den) in
    if Z.sign den = 0 then bad () else q (Z.of_string num) den
  | None ->
    let s, power = match String.index_opt (String.lowercase_ascii s) 'e' with
      | None -> s, 0
      | Some i ->
        let e = String.sub s (i + 1) (String.length s - i - 1) in
        let sign, e = match if e = "" then ' ' else e.[0] with
          | '-' -> -1, String.sub e 1 (String.length e - 1)
          | '+' -> 1, String.sub e 1 (String.length e - 1)
          | _ -> 1, e in
        if String.length e > 3 then bad () else String.sub s 0 i, sign * int_of_string (digits e) in
    let num, places = match String.index_opt s '.' with
      | None -> digits s, 0
      | Some i ->
        let after = digits (String.sub s (i + 1) (String.length s - i - 1)) in
        digits (String.sub s 0 i) ^ after, String.length after in
    let num = Z.of_string num and power = power - places in
    if power >= 0 then q (Z.mul num (ten power)) Z.one else q num (ten (-power))

(* -- proofs: hints for the search, in which nothing is trusted ------------------------------ *)

type witness = Tree of int array | Flows
type step = { witnesses : int option; power : Z.t option }
type side = { prefix : step list; start : Checker.q list list option; cycle : step list option }
type count = { weights : Z.t list }
type proof = {
  lists : (int * ((int * int) * witness) list) list option;
  forward : side option;
  backward : side option;
  observations : int option;
  quilts : (Z.t * Z.t * Z.t option * Z.t option) list option;
  counts : count option
}

let matrix where v = list (list number) where v

let square where v =
  let rows = matrix where v in
  if rows = [] || List.exists (fun row -> List.compare_lengths row rows <> 0) rows then
    refuse (where ^ " is not a square matrix, or has no rows");
  rows

(* The entries of a square table, by their place; null for none. *)
let by_pairs each where v =
  let rows = list (list (option each)) where v in
  if rows = [] || List.exists (fun row -> List.compare_lengths row rows <> 0) rows then
    refuse (where ^ " is not a square matrix, or has no rows");
  List.length rows,
  List.concat (List.mapi (fun x row -> List.concat (List.mapi (fun y found ->
      Option.to_list (Option.map (fun w -> ((x, y), w)) found)) row)) rows)

(* Only read: no theorem covers the families that have flows. *)
let flows where v =
  let f = fields where ["flow"; "surplus"; "reserve"] [] v in
  ignore (square where (f "flow"), list square where (f "surplus"), list square where (f "reserve"));
  Flows

let witness where v = match v with
  | List l -> Tree (Array.of_list (List.map (small where) l))
  | Object _ -> flows where v
  | v -> wrong where v

let step where v =
  let f = fields where [] ["witnesses"; "power"] v in
  { witnesses = option small where (f "witnesses"); power = option positive where (f "power") }

let side where v =
  let f = fields where ["prefix"] ["start"; "cycle"] v in
  { prefix = list step where (f "prefix");
    start = option square where (f "start");
    cycle = option (list step) where (f "cycle") }

let quilt where v = match v with
  | List [first; last; left; right] ->
    (integer where first, integer where last, option integer where left,
     option integer where right)
  | v -> wrong where v

let count where v =
  let f = fields where ["weights"; "lengths"; "W"; "slack"] [] v in
  ignore (list positive where (f "lengths"), integer where (f "W"), number where (f "slack"));
  { weights = list integer where (f "weights") }

let proof where v =
  let keys = ["witnesses"; "forward"; "backward"; "observations"; "quilts"; "count"] in
  let f = fields where [] keys v in
  { lists = option (list (by_pairs witness)) where (f "witnesses");
    forward = option side where (f "forward");
    backward = option side where (f "backward");
    observations = option small where (f "observations");
    quilts = option (list quilt) where (f "quilts");
    counts = option count where (f "count") }

(* -- certificates --------------------------------------------------------------------------- *)

type certificate = {
  claim : Checker.claim;
  proofs : proof list;
  unproved : string option (* part of the claim that no theorem covers *)
}

let initial where = function
  | Text "stationary" -> Checker.Stationary
  | Text "any" -> Checker.Any
  | v -> Checker.Given (list number where v)

let chain where v =
  let f = fields where ["transition_matrices"; "initial_distribution"] ["observations"] v in
  let hidden = option (list integer) where (f "observations") in
  { Checker.matrices = list square where (f "transition_matrices");
    initial = initial where (f "initial_distribution") },
  hidden <> None

let mixing where v =
  let f = fields where ["steps"; "overlap"] [] v in
  let overlap = number where (f "overlap") in
  if Z.sign overlap.qnum <= 0 || Z.gt overlap.qnum overlap.qden then
    refuse (where ^ ": overlap must be above 0 and at most 1");
  { Checker.apart = positive where (f "steps"); overlap }

let mechanisms = ["mqm-exact"; "mqm-approx"; "group-dp"; "entry-dp"; "leakage"; "wasserstein"]
let kinds = ["chains"; "binary_interval"; "interval"; "total_variation"; "mixing"]

let certificate (s : string) : certificate =
  let where = "the certificate" in
  let keys = ["certificate"; "version"; "mechanism"; "family"; "epsilon"; "length"; "window";
              "side_information"; "scale"; "proofs"] in
  let f = fields where keys ["approximate"] (read_json s) in
  if f "certificate" <> Text "pufferflow" then refuse "this is not a certificate of pufferflow";
  if f "version" <> Int (Z.of_int 2) then refuse "its version is not 2";
  let mechanism = text "mechanism" (f "mechanism") in
  if not (List.mem mechanism mechanisms) then refuse "mechanism is unknown";
  let known = match f "side_information" with
    | Text "none" -> false | Text "any" -> true
    | _ -> refuse "side_information is not none or any" in
  let family = f "family" in
  let of_family = fields "family" [] kinds family in
  let chains = match of_family "chains" with
    | Null -> []
    | v -> list chain "chains" v in
  let others = List.filter (fun key -> key <> "chains" && of_family key <> Null) kinds in
  if List.length others + (if has "chains" family && of_family "chains" <> Null then 1 else 0) <> 1
  || (others = [] && chains = []) then refuse "family has not one key";
  let proofs = list proof "proofs" (f "proofs") in
  let mixings = match of_family "mixing" with Null -> [] | v -> [mixing "mixing" v] in
  let unproved =
    if others <> [] && mixings = [] then Some ("a family given by " ^ List.hd others)
    else if mechanism = "wasserstein" then Some "the scale of a single count"
    else if known then Some "side information"
    else if f "approximate" <> Null then Some "a delta"
    else if List.exists snd chains then Some "hidden chains"
    else None in
  { claim = { Checker.family = List.map fst chains; mixings;
              epsilon = number "epsilon" (f "epsilon");
              scale = number "scale" (f "scale");
              longest = positive "length" (f "length");
              window = positive "window" (f "window") };
    proofs; unproved }
