//! Proves that an addition takes rows only, plus a file for a pass or a helper's body.
//!
//! A copy of the repository gets one more target, operation of the legality matrix with rules, PTX
//! operation with its lowering, helper with its body, and pass. The copy builds, compiles and runs
//! kernels for that target, and shows the new cells. An operation that only a rule makes illegal
//! there is rejected with the rule's message. As long as the count of helpers is wrong, the build
//! fails and names the row.

use std::path::{Path, PathBuf};
use std::process::Command;

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn copy_of_the_repository(to: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in ["tables", "codegen", "src"] {
        copy_folder(&root.join(name), &to.join(name));
    }
    for name in ["Cargo.toml", "Cargo.lock", "build.rs"] {
        std::fs::copy(root.join(name), to.join(name)).unwrap();
    }
}

/// The row of an existing target with another name, number and column.
fn add_row(targets: &Path) {
    let text = std::fs::read_to_string(targets).unwrap();
    let row = "  (col: 127, name: \"sm_122\", sm: 122, variant: \"base\", kind: \"real\", parent: Some(\"sm_120\"), \
               generation: Some(\"sm100\"), min_ptx: Some(\"9.0\"), src: \"made up by a test\"),\n]";
    let end = text.rfind(']').unwrap();
    std::fs::write(targets, format!("{}{row}\n", &text[..end])).unwrap();
}

/// Appends a row to a table.
fn append(table: &Path, row: &str) {
    let text = std::fs::read_to_string(table).unwrap();
    let end = text.rfind(']').unwrap();
    std::fs::write(table, format!("{}  {row},\n]\n", &text[..end])).unwrap();
}

/// An operation of the matrix, with rules for the verdicts that need no code.
fn add_operation(legality: &Path) {
    append(
        &legality.join("operations.ron"),
        "(id: 236, op: \"made.up\", family: \"integer\", forms: \"made.up\", min_ptx: \"9.0\", state: \"built\", status: \"proposed\", \
         src: \"made up by a test\")",
    );
    for (on, verdict) in [("sm_30..sm_121", "illegal No '{target}' makes up"), ("sm_122", "native IADD3")] {
        let row = format!(
            "(ops: \"made.up\", on: \"{on}\", verdict: \"{verdict}\", status: \"proposed\", src: \"made up by a test\")"
        );
        append(&legality.join("integer.ron"), &row);
    }
    let instructions = "(op: \"made.up\", is: \"vgap2\", src: \"made up by a test\")";
    append(&legality.join("instructions.ron"), instructions);
}

/// Makes an operation illegal on the new target: its rule excludes the target, and another one
/// rejects it there.
fn refuse_operation(rules: &Path) {
    let text = std::fs::read_to_string(rules).unwrap();
    let everywhere = "(ops: \"shf\", on: \"sm_75..\"";
    assert_eq!(text.matches(everywhere).count(), 1);
    std::fs::write(rules, text.replace(everywhere, "(ops: \"shf\", on: \"sm_75.. -sm_122\"")).unwrap();
    let row = "(ops: \"shf\", on: \"sm_122\", verdict: \"illegal [l r] Feature '{op}.{1}{types}' was taken from '{target}'\", \
               status: \"proposed\", src: \"made up by a test\")";
    append(rules, row);
}

/// Makes an operation legal on a target, in the last line but one.
fn using(operation: &str, target: &str) -> String {
    format!(
        ".version 9.0\n.target {target}\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n.reg .b64 %a; .reg .b32 %x;\n\
         ld.param.u64 %a, [out]; ld.global.u32 %x, [%a];\n{operation}\nst.global.u32 [%a], %x; ret; }}\n"
    )
}

/// A video operation of two lanes that copies another: its name, form and step.
fn add_ptx_operation(tables: &Path) {
    let source = "src: \"made up by a test\"";
    append(
        &tables.join("ptx/operations.ron"),
        &format!("(op: \"vgap2\", also: \"\", doc: \"video distance\", {source})"),
    );
    let form = format!(
        "(op: \"vgap2\", mods: \"\", types: \"u32 s32, u32 s32, u32 s32\", args: \"mask:0*2 lanes:1*2 lanes:2*2 reg:0\", \
         ptx: \"3.0\", sm: 30, on: \"\", {source})"
    );
    append(&tables.join("ptx/forms/video.ron"), &form);
    append(&tables.join("lowering/video.ron"), &format!("(op: \"vgap2\", step: Difference, lanes: 2, {source})"));
}

/// A helper of the last category with its body; the category's count stays unchanged.
fn add_helper(helpers: &Path) {
    let row = "(names: \"__cuda_sm80_made_up\", with: [], category: \"sm80-inline\", convention: 'A', returns: \"b32 d\", \
               params: \"b32 a, b32 b\", op: \"made up\", on: \"sm_80..\", computes: \"twice a, plus b\", \
               body: Ptx(\"made_up.ptx\"), name: Proposed, proto: Proposed, src: \"made up by a test\")";
    append(&helpers.join("memory.ron"), row);
    std::fs::write(helpers.join("made_up.ptx"), "mad.lo.u32 d, a, 2, b;\n").unwrap();
}

/// A pass that inserts a NOP at the entry: its file and its row.
fn add_pass(root: &Path) {
    let body = "//! A pass made up by a test.\n\nuse crate::analysis::PassCx;\nuse crate::tables::Op;\n\n\
                /// Puts a NOP in front.\npub fn run(cx: &mut PassCx) {\n    let nop = \
                cx.function.make(Op::NOP);\n    \
                let entry = cx.function.entry();\n    cx.function[entry].insert(0, nop);\n}\n";
    std::fs::write(root.join("src/opt/made_up.rs"), body).unwrap();
    let table = root.join("tables/passes.ron");
    let text = std::fs::read_to_string(&table).unwrap();
    let row = "  (name: \"made_up\", run: \"opt::made_up::run(cx)\", phase: \"OriRemoveNopCode\", when: \"always\", optional: true, \
               requires: \"physical\", makes: \"\", destroys: \"\", preserves: \"cfg dominators post_dominators loops\", \
               after: [(\"remove_nops\", \"it would remove the NOP\")], src: \"made up by a test\"),\n";
    let before = text.find("(name: \"remove_nops\"").unwrap();
    let start = before + text[before..].find('\n').unwrap() + 1;
    std::fs::write(table, format!("{}{row}{}", &text[..start], &text[start..])).unwrap();
}

/// Whether a kernel compiled with these extra options has a NOP before its end; NOPs after the end
/// are padding.
fn has_nop(sassafras: &Path, folder: &Path, options: &[&str]) -> bool {
    let cubin = folder.join("nops.cubin");
    let saxpy = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/saxpy.ptx");
    let compiled = Command::new(sassafras).arg("-arch=sm_90").args(options).arg(saxpy).arg("-o").arg(&cubin).output();
    assert!(compiled.unwrap().status.success());
    let shown = Command::new(sassafras).arg("disasm").arg(&cubin).output().unwrap();
    let text = String::from_utf8(shown.stdout).unwrap();
    text.find(" NOP").unwrap() < text.find(" EXIT").unwrap()
}

/// Raises the count of the last category by one.
fn count_helper(categories: &Path) {
    let text = std::fs::read_to_string(categories).unwrap();
    let (one, two) = ("first: 0x438, count: 1", "first: 0x438, count: 2");
    assert_eq!(text.matches(one).count(), 1);
    std::fs::write(categories, text.replace(one, two)).unwrap();
}

/// Uses the additions: 2 · 5 + 7, and the distances of the halves of two words.
const USES: &str = ".version 9.0
.target sm_122
.address_size 64
.extern .func (.reg .b32 d) __cuda_sm80_made_up (.reg .b32 a, .reg .b32 b);
.visible .entry uses(.param .u64 out, .param .u32 x, .param .u32 y)
{
    .reg .b64 %a; .reg .b32 %x, %y, %d, %five;
    ld.param.u64 %a, [out]; ld.param.u32 %x, [x]; ld.param.u32 %y, [y];
    mov.u32 %five, 5;
    call (%d), __cuda_sm80_made_up, (%five, 7);
    st.global.u32 [%a], %d;
    vgap2.u32.u32.u32 %d, %x, %y, %x;
    st.global.u32 [%a+4], %d;
    ret;
}
";

fn cell(sassafras: &Path, operation: &str, target: &str) -> String {
    let shown = Command::new(sassafras).args(["targets", "--matrix", operation, target]).output().unwrap();
    assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
    String::from_utf8(shown.stdout).unwrap()
}

/// The built program, or the errors of the build.
fn build(folder: &Path) -> Result<PathBuf, String> {
    // A separate target folder that survives the test, so that only the first run builds the
    // dependencies. The program compiles a few small kernels: optimising it takes far longer.
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/add-target");
    let output = Command::new(env!("CARGO"))
        .args(["build", "--offline", "--bin", "sassafras"])
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", &target)
        .envs([("CARGO_PROFILE_DEV_OPT_LEVEL", "0"), ("CARGO_PROFILE_DEV_DEBUG", "none"), ("CARGO_INCREMENTAL", "0")])
        .output()
        .unwrap();
    if output.status.success() {
        Ok(target.join("debug/sassafras"))
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// Runs a kernel whose last argument is a buffer, and returns the buffer.
fn run(sassafras: &Path, cubin: &Path, kernel: &str, args: &[String], buffer: (&Path, &[u8])) -> Vec<u8> {
    std::fs::write(buffer.0, buffer.1).unwrap();
    let mut command = Command::new(sassafras);
    command.arg("run").arg(cubin).args(["--kernel", kernel, "--grid", "1", "--block", "32"]);
    args.iter().for_each(|arg| {
        command.args(["--arg", arg]);
    });
    let run = command.output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    std::fs::read(buffer.0).unwrap()
}

/// The first line of the compiler's message about a text that it rejects.
fn refusal(sassafras: &Path, folder: &Path, text: &str, target: &str) -> String {
    std::fs::write(folder.join("bad.ptx"), text).unwrap();
    let arch = format!("-arch={target}");
    let mut command = Command::new(sassafras);
    let run =
        command.args([&arch, "--ptxas-compat", "bad.ptx", "-o", "bad.cubin"]).current_dir(folder).output().unwrap();
    assert!(!run.status.success());
    String::from_utf8_lossy(&run.stderr).lines().next().unwrap_or_default().to_string()
}

fn compile(sassafras: &Path, source: &Path, cubin: &Path) {
    let compiled = Command::new(sassafras).arg("-arch=sm_122").arg(source).arg("-o").arg(cubin).output().unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
}

#[test]
fn rows_add_a_target_operations_and_a_helper() {
    let temp = tempfile::tempdir().unwrap();
    let at = |name: &str| temp.path().join(name);
    copy_of_the_repository(temp.path());
    add_row(&at("tables/targets.ron"));
    add_operation(&at("tables/legality"));
    add_ptx_operation(&at("tables"));
    refuse_operation(&at("tables/legality/integer.ron"));
    add_helper(&at("tables/helpers"));
    add_pass(temp.path());
    let refused = build(temp.path()).unwrap_err();
    let said = "[helpers] sm80-inline: 2 helpers, not 1";
    let line = refused.lines().find(|line| line.contains(said)).unwrap_or_else(|| panic!("{refused}"));
    assert!(line.contains("helpers/categories.ron:") && line.contains(":3: "), "{line}");
    count_helper(&at("tables/helpers/categories.ron"));
    let sassafras = build(temp.path()).unwrap_or_else(|said| panic!("{said}"));

    assert!(cell(&sassafras, "made.up", "sm_122").starts_with("made.up on sm_122: native IADD3 (0x00000000)"));
    assert!(cell(&sassafras, "made.up", "sm_90").contains("message  No 'sm_90' makes up"));
    assert!(cell(&sassafras, "div.s64", "sm_122").contains("handler"));
    let said = |operation: &str, target: &str| refusal(&sassafras, temp.path(), &using(operation, target), target);
    let shift = "shf.l.wrap.b32 %x, %x, %x, 3;";
    assert_eq!(said(shift, "sm_122"), "ptxas bad.ptx, line 8; error   : Feature 'shf.l.b32' was taken from 'sm_122'");
    assert_eq!(
        said("vgap2.u32.u32.u32 %x, %x, %x, %x;", "sm_90"),
        "ptxas bad.ptx, line 8; error   : No 'sm_90' makes up"
    );
    std::fs::write(at("good.ptx"), using(shift, "sm_120")).unwrap();
    compile(&sassafras, &at("good.ptx"), &at("good.cubin"));

    let listed = Command::new(&sassafras).arg("--print-phases").output().unwrap();
    assert!(String::from_utf8_lossy(&listed.stdout).contains("OriRemoveNopCode\n      remove_nops\n      made_up\n"));
    assert!(has_nop(&sassafras, temp.path(), &[]));
    assert!(!has_nop(&sassafras, temp.path(), &["--disable-pass=made_up"]));

    let saxpy = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/saxpy.ptx");
    compile(&sassafras, &saxpy, &at("saxpy.cubin"));
    let bytes = |values: [f32; 3]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    std::fs::write(at("x"), bytes([1.0, 2.0, 3.0])).unwrap();
    let args =
        ["u32:3".into(), "f32:2".into(), format!("in:{}", at("x").display()), format!("inout:{}", at("y").display())];
    let y = run(&sassafras, &at("saxpy.cubin"), "saxpy", &args, (&at("y"), &bytes([10.0, 20.0, 30.0])));
    assert_eq!(y, bytes([12.0, 24.0, 36.0]));

    std::fs::write(at("uses.ptx"), USES).unwrap();
    compile(&sassafras, &at("uses.ptx"), &at("uses.cubin"));
    let words = [0x0005_0009, 0x0008_0002].map(|word| format!("u32:{word}"));
    let args: Vec<String> = std::iter::once(format!("inout:{}", at("out").display())).chain(words).collect();
    let out = run(&sassafras, &at("uses.cubin"), "uses", &args, (&at("out"), &[0; 8]));
    let words: Vec<u32> = out.chunks_exact(4).map(|w| u32::from_le_bytes(w.try_into().unwrap())).collect();
    assert_eq!(words, [17, 0x0003_0007]);
    let shown = Command::new(&sassafras).args(["helpers", "__cuda_sm80_made_up"]).output().unwrap();
    assert!(shown.status.success() && String::from_utf8_lossy(&shown.stdout).contains("twice a, plus b"));
}
