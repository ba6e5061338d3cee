(* The checker as an OCaml program, and what its soundness theorem assumes. *)
From Coq Require Import ExtrOcamlBasic ExtrOcamlZBigInt.
From Pufferflow Require Import Numbers Chains Claims Checker Soundness.


Print Assumptions check_sound.

Extraction "checker.ml" check exp_up exp_down forward_rows backward_rows growth exp_of states
  rows_after first_rows nodes given_rows near_rows product row_ok
  period matrix cost hidden others at_xy.
