//! The output of `print`, and the errors of a wrong command line.

use sassafras_codegen::{model::Model, print, report::Report, source::Sources};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn model() -> Model {
    let (mut sources, mut report) = (Sources::new(&root().join("tables")), Report::default());
    let model = Model::load(&mut sources, &mut report);
    assert!(report.is_empty(), "{}", report.render(&sources, true));
    model
}

#[test]
fn rows_print_resolved() {
    let model = model();
    let print = |table: &str, name: &str| print::print(&model, table, Some(name)).expect("there is one");
    let want = "S2R 0x919 `S2R` on sm75 sm80 sm90 sm100\n  0..11      opcode 0x919\n  12..15     guard, highest bit: not\n  \
        16..23     operand `d`\n  24..71     unseen, written as 0x0\n  72..79     operand `s`\n  \
        80..104    unseen, written as 0x0\n  105..108   stall cycles\n  109        stay\n  110..112   write barrier\n  \
        113..115   read barrier\n  116..121   barriers waited for\n  122..124   reuse\n  125..127   zero\n  \
        source     learned by bit flips through nvdisasm 13.2.78; words of ptxas 13.0.88\n";
    assert_eq!(print("encoding", "S2R"), want);
    let want = "fmz\n  kind         ftz\n  default      -\n  codes        0=- 1=FTZ 2=FMZ\n  source       \
        all codes through nvdisasm 13.2.78\n";
    assert_eq!(print("modifiers", "fmz"), want);
    assert!(print("modifiers", "mem").contains("5=STRONG.CTA (prints STRONG.SM)"));
    let want = "SR_TID.X\n  number       33\n  on           sm75 sm80 sm90 sm100\n  uniform      no\n  row bits     0x1f\n  counts       no\n  keeps        yes\n  \
        source       all 256 numbers through nvdisasm 13.2.78; row_bits: warps of consecutive threads, CUDA programming guide; keeps: PTX ISA, special registers\n";
    assert_eq!(print("special_registers", "SR_TID.X"), want);
    assert!(print("ori", "S2R").contains("  role         s        given, special register, width 1\n"));
    assert!(print("features", "shared_cluster_window").contains(" sm_90a sm_100 "));
    assert!(print("targets", "sm_90a").contains("\n  parent       sm_90\n  generation   sm90\n"));
    assert!(print("targets", "sm_90a").contains("uniform_datapath"));
    assert!(
        print("generations", "sm90").contains("\n  targets      sm_90 sm_90a\n  uniform      6 bits, 63 registers\n")
    );
    assert!(print("phases", "PromoteFP16").starts_with("PromoteFP16\n  order        2\n  seed         2\n"));
    assert!(print("eiattr", "REGCOUNT").starts_with("REGCOUNT\n  id           0x2f\n"));
}

#[test]
fn every_form_prints_a_map_of_128_bits() {
    let model = model();
    let text = print::print(&model, "encoding", None).expect("all forms");
    assert!(!text.contains("  nothing"));
    assert_eq!(text.lines().filter(|l| !l.starts_with(' ')).count(), model.encoding.forms.len());
}

#[test]
fn unknown_names_list_the_choices() {
    let bin = env!("CARGO_BIN_EXE_codegen");
    let run = |args: &[&str]| {
        let output = std::process::Command::new(bin).current_dir(root()).args(args).output().expect("it runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let want = "no table is called `foo`; there are: targets generations features ori encoding modifiers phases \
        special_registers eiattr helpers\n";
    assert_eq!(run(&["print", "foo"]), (Some(2), want.into()));
    let want = "`generations` has no row called `sm42`; there are: sm75 sm80 sm90 sm100\n";
    assert_eq!(run(&["print", "generations", "sm42"]), (Some(2), want.into()));
    assert_eq!(
        run(&["learn", "42", "00000000000000000000000000000000"]),
        (Some(2), "no target is called `sm_42`\n".into())
    );
    assert_eq!(run(&["learn", "90"]).0, Some(2));
}
