//! The forms of `tests/cases/lowering/forms.txt`, and the kernel of each.
//!
//! A kernel loads its inputs from its thread's row, executes the form, and stores its results and
//! its scratch, shared and local memory into the same row.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Threads of a block.
pub const THREADS: usize = 32;
/// Bytes of global memory per thread: inputs up to 160, then results.
pub const STRIDE: usize = 448;
/// Offset of the results.
pub const RESULTS: usize = 160;

/// Prefix of a note on a form whose result the ISA leaves open, or where we follow ptxas against
/// the ISA.
const PTXAS_ONLY: &str = "ptxas only";
/// Prefix of a note on a form where ptxas violates the ISA.
const PTXAS_WRONG: &str = "ptxas wrong";

/// A function that forms can call: returns four f32 in reverse order.
pub const FUNCTION: &str = ".func (.param .align 16 .b8 fr[16]) fv (.param .align 16 .b8 fa[16]) {\n.reg .f32 f<5>;\n\
    ld.param.v4.f32 {f1,f2,f3,f4},[fa];\nst.param.v4.f32 [fr],{f4,f3,f2,f1};\nret;\n}\n";

/// A line of forms.txt.
pub struct Form {
    pub text: String,
    /// Whether its results can be compared with ptxas's.
    pub compared: bool,
    /// Whether it is also compared with the interpreter.
    pub interpreted: bool,
    /// Compared with the interpreter; the differing result of ptxas is listed.
    pub ptxas_wrong: bool,
    /// The targets that have it: `[80] FORM` from sm_80 on, `[80-89] FORM` only these.
    from: u32,
    to: u32,
    /// `[100a] FORM`: only architecture-specific targets, from this one on; `[100-100a] FORM`: only
    /// this one.
    own: bool,
}

impl Form {
    /// Whether a target has the form.
    pub fn on(&self, target: &str) -> bool {
        let number = target.trim_start_matches("sm_");
        let (number, own) = number.strip_suffix('a').map_or((number, false), |number| (number, true));
        self.own == own && number.parse::<u32>().is_ok_and(|number| (self.from..=self.to).contains(&number))
    }
}

/// Folder of the forms and lists.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/lowering")
}

/// All forms, in the order of their lines.
pub fn forms() -> Vec<Form> {
    let text = std::fs::read_to_string(folder().join("forms.txt")).unwrap();
    let form = |line: &str| {
        let (text, note) = line.split_once(" // ").unwrap_or((line, ""));
        let (from, text) = text.strip_prefix('[').and_then(|t| t.split_once("] ")).unwrap_or(("0", text));
        let (from, to) = from.split_once('-').unwrap_or((from, "999"));
        let own = from.ends_with('a') || to.ends_with('a');
        let (from, to) = (from.trim_end_matches('a'), to.trim_end_matches('a'));
        let ptxas_wrong = note.starts_with(PTXAS_WRONG);
        Form {
            text: text.to_string(),
            compared: note.is_empty() || note.starts_with(PTXAS_ONLY) || ptxas_wrong,
            interpreted: note.is_empty() || ptxas_wrong,
            ptxas_wrong,
            from: from.parse().unwrap(),
            to: to.parse().unwrap(),
            own,
        }
    };
    text.lines().filter(|l| !l.starts_with("//") && !l.is_empty()).map(form).collect()
}

/// Stores of the result registers that a form names: kind, first byte, width, type.
fn stores(form: &str) -> String {
    const KINDS: [(char, usize, usize, &str); 5] =
        [('r', 0, 4, "b32"), ('d', 16, 8, "b64"), ('f', 48, 4, "f32"), ('e', 64, 8, "f64"), ('h', 96, 2, "b16")];
    let names: BTreeSet<&str> = form.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let mut out = String::new();
    for (kind, first, width, ty) in KINDS {
        // Register 1 may be a result, too; it is stored after the others.
        for (place, number) in [4, 5, 6, 7, 1].into_iter().enumerate() {
            let name = format!("{kind}{number}");
            if names.contains(name.as_str()) && place < 4 || number == 1 && form.contains(&format!("{name},")) {
                let at = RESULTS + first + width * place.min(3);
                out += &format!("st.global.{ty} [io+{at}], {name};\n");
            }
        }
    }
    for number in [3, 4] {
        if names.contains(format!("p{number}").as_str()) {
            let at = RESULTS + 100 + 4 * number;
            out += &format!("selp.b32 r8, 1, 2, p{number};\nst.global.b32 [io+{at}], r8;\n");
        }
    }
    out
}

fn kernel(number: usize, form: &str) -> String {
    let loads: String = [
        ("b32", 'r', 0, 4),
        ("b64", 'd', 16, 8),
        ("f32", 'f', 40, 4),
        ("f64", 'e', 56, 8),
        ("b16", 'h', 80, 2),
        ("b32", 'x', 88, 4),
        ("b16", 'g', 100, 2),
    ]
    .iter()
    .flat_map(|(ty, kind, at, width)| {
        (0..3).map(move |i| format!("ld.global.{ty} {kind}{}, [io+{}];\n", i + 1, at + width * i))
    })
    .collect();
    format!(
        ".visible .entry k{number}(.param .u64 p) {{\n.reg .b32 r<10>, s, t; .reg .b64 d<10>, io; .reg .f32 f<10>; .reg .f64 e<10>;\n\
         .reg .b16 h<10>, g<4>; .reg .b32 x<4>; .reg .pred p<10>; .shared .align 16 .b8 sh[512]; .local .align 16 .b8 lo[64];\n\
         ld.param.u64 io, [p];\nmov.u32 s, %ctaid.x;\nmov.u32 t, %tid.x;\n\
         mad.lo.u32 t, s, {THREADS}, t;\nmad.wide.u32 io, t, {STRIDE}, io;\nmov.u32 t, %tid.x;\nmov.u32 s, sh;\nmad.lo.u32 s, t, 16, s;\n\
         {loads}add.u64 d3, io, 128;\nand.b32 r9, r3, 63;\nsetp.lt.u32 p1, r1, 0x40000000;\nsetp.eq.u32 p2, r2, 9;\n\
         st.shared.u64 [s], d1;\nst.shared.u64 [s+8], d2;\nst.local.v2.u64 [lo], {{d1, d2}};\nst.local.v2.u64 [lo+16], {{d2, d1}};\n{form}\n{}\
         ld.shared.u64 d8, [s];\nst.global.u64 [io+400], d8;\nld.shared.u64 d8, [s+8];\nst.global.u64 [io+408], d8;\n\
         ld.local.u64 d8, [lo+16];\nst.global.u64 [io+416], d8;\nld.local.u64 d8, [lo+24];\nst.global.u64 [io+424], d8;\nret;\n}}\n",
        stores(form)
    )
}

/// The module of some forms for a target; form `number` is kernel `kNUMBER`.
pub fn module(target: &str, chunk: &[(usize, &Form)]) -> String {
    let head = format!(
        ".version 9.0\n.target {target}\n.address_size 64\n.global .align 8 .b32 gv[4];\n.const .align 8 .b32 cv[4] = {{1, 2, 3, 4}};\n"
    );
    let function = if chunk.iter().any(|(_, form)| form.text.contains("fv,")) { FUNCTION } else { "" };
    chunk.iter().fold(head + function, |text, (number, form)| text + &kernel(*number, &form.text))
}
