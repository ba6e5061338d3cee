(* pufferflow-checker FILE ...: one line a certificate; - is standard input. Ends with 0 if all were
   accepted, with 1 if one was refused, with 2 if one has a rule that no theorem covers. It is
   trusted, with parse.ml. *)

open Parse

type answer = Accepted | Wrong of string | Uncovered of string

let precisions = [192; 512; 2048]

let four = Checker.inject_Z (Z.of_int 4)

let decide text =
  let { claim; proofs; unproved } = certificate text in
  match unproved with
  | Some rule -> Uncovered rule
  | None ->
    if List.length proofs <> List.length claim.family + List.length claim.mixings then
      refuse "there is not one proof for every chain";
    if List.exists (fun p -> p.counts <> None) proofs then
      refuse "a count proves the scale of wasserstein alone";
    (* As in the other verifier a program must be one even if all records reveal little enough.
    *)
    let whole = Checker.qmult (Checker.inject_Z claim.longest) (Checker.cost claim) in
    let any = { claim with epsilon = Checker.qplus claim.epsilon (Checker.qmult whole four) } in
    let program m = function
      | Some h -> Checker.all_proved (if Checker.group_ok claim then any else claim) [m] [h]
      | None -> true in
    let attempt bits =
      let hints = match claim.mixings with
        | [] -> List.map2 (Search.hints bits claim) claim.family proofs
        | _ -> [] in
      let mixing = match claim.mixings with
        | [m] when not (Checker.group_ok claim) -> Search.mixing_hints bits claim m
        | _ -> (Search.nothing, []) in
      Checker.check claim (List.map (Option.value ~default:Search.nothing) hints) mixing
      && List.for_all2 program claim.family hints in
    if not (List.for_all Checker.model_ok claim.family) then
      refuse "a row of a matrix is not a distribution";
    let fits (m : Checker.model) = match m.initial with
      | Checker.Given p ->
        List.length m.matrices = 1
        && Checker.row_ok (Search.nat (List.length (List.hd m.matrices))) p
      | _ -> true in
    if not (List.for_all fits claim.family) then refuse "a start is not a distribution";
    if Z.sign claim.scale.qnum <= 0 then refuse "without noise a loss is not bounded";
    let attempt bits = try attempt bits with Search.Open -> false in
    if List.exists attempt precisions then Accepted
    else if List.exists (Search.first_matters claim) claim.family then
      Uncovered "windows whose first record restricts the last"
    else if List.exists Search.alternates claim.family then
      Uncovered "values of nodes that alternate"
    else Wrong "no loss of at most epsilon is proved at its scale"

let read path =
  let channel = if path = "-" then stdin else open_in_bin path in
  let found = Buffer.create 65536 in
  let rec go () =
    match Buffer.add_channel found channel 65536 with () -> go () | exception End_of_file -> () in
  set_binary_mode_in channel true;
  go ();
  if path <> "-" then close_in channel;
  Buffer.contents found

let () =
  let code = ref 0 in
  let answer path =
    let found = try decide (read path) with
      | Refused reason -> Wrong reason
      | Search.Unproved rule -> Uncovered rule
      | Sys_error reason -> Wrong reason in
    let line, ends = match found with
      | Accepted -> "accepted", 0
      | Wrong reason -> "refused: " ^ reason, 1
      | Uncovered rule -> "unproved rule: " ^ rule, 2 in
    if !code <> 1 then code := max !code ends;
    if ends = 1 then code := 1;
    print_endline (if path = "-" then line else path ^ ": " ^ line) in
  List.iter answer (List.tl (Array.to_list Sys.argv));
  exit !code
