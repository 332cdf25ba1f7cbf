//! The forms of `tests/cases/legality/forms.txt`, each with its kernel.

use std::path::PathBuf;

/// A form of an operation.
pub struct Form {
    /// The operation's row in `tables/legality`.
    pub operation: String,
    pub name: String,
    /// One letter per target.
    pub verdicts: Vec<char>,
    /// Kinds of the registers that it defines, and of those that it reads.
    pub registers: [String; 2],
    /// Its statements only.
    pub body: String,
    pub kernel: String,
}

/// The version under which forms for a target are judged.
pub fn version(target: &str) -> &'static str {
    let known = sassafras::tables::Target::by_name(target);
    if known.is_some_and(|t| t.min_ptx > (9, 0)) { "9.4" } else { "9.0" }
}

pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cases/legality")
}

/// The targets, and the forms with their kernels.
pub fn forms() -> (Vec<String>, Vec<Form>) {
    let text = std::fs::read_to_string(folder().join("forms.txt")).unwrap();
    let mut lines = text.lines().filter(|line| !line.starts_with("//"));
    let targets = lines.next().unwrap().split_whitespace().skip(1).map(str::to_string).collect();
    let form = |(number, line): (usize, &str)| {
        let columns: Vec<&str> = line.splitn(7, '|').map(str::trim).collect();
        let [operation, name, verdicts, results, operands, directives, body] = columns[..] else { panic!("{line}") };
        let kernel = kernel(number, [results, operands], directives, body);
        Form {
            operation: operation.split(' ').nth(1).unwrap().to_string(),
            name: name.to_string(),
            verdicts: verdicts.chars().collect(),
            registers: [results, operands].map(str::to_string),
            body: body.to_string(),
            kernel,
        }
    };
    (targets, lines.enumerate().map(form).collect())
}

/// The `.reg` type of a kind of register.
fn register(kind: char) -> &'static str {
    match kind {
        'r' => "b32",
        'l' => "b64",
        'h' => "b16",
        'f' => "f32",
        _ => "f64",
    }
}

/// A kernel around the statements, in one line, which loads the operands and stores the results.
pub fn kernel(number: usize, [results, operands]: [&str; 2], directives: &str, body: &str) -> String {
    let mut text = format!(
        ".visible .entry k{number}(.param .u64 pi, .param .u64 po) {directives} {{ .reg .b64 %pi, %po, %tt, %x<20>; .reg .b32 %t0, %w<40>; \
         .reg .pred %p<8>; .reg .b16 %s<20>; .reg .f32 %ff<40>; .reg .f64 %dd<20>; "
    );
    for (name, kinds) in [("a", operands), ("o", results)] {
        kinds.chars().enumerate().for_each(|(i, kind)| text += &format!(".reg .{} %{name}{i}; ", register(kind)));
    }
    text += "ld.param.u64 %pi, [pi]; ld.param.u64 %po, [po]; ";
    if !operands.is_empty() {
        text += "mov.u32 %t0, %tid.x; mul.wide.u32 %tt, %t0, 64; add.s64 %pi, %pi, %tt; ";
    }
    for (i, kind) in operands.chars().enumerate() {
        text += &format!("ld.volatile.global.{} %a{i}, [%pi+{}]; ", register(kind), 8 * i);
    }
    text += body;
    for (i, kind) in results.chars().enumerate() {
        text += &format!(" st.global.{} [%po+{}], %o{i};", register(kind), 8 * i);
    }
    text + " ret; }\n"
}
