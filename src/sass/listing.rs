//! The code listing of a cubin, as `sassafras disasm` prints it in text or JSON.
//!
//! Each instruction has its byte offset, its text as nvdisasm prints it, and its control field.
//! Branch targets are labels `.L_x_N`, numbered through the file; functions and symbols inside them
//! keep their names. Every word has a line; a word that does not decode prints as `.word`.
//!
//! The control column is a format of this project: `[B0-2---:R1:W-:Y:S04]` waits for scoreboards 0
//! and 2, sets scoreboard 1 when the sources are read and none when the result is written, may
//! yield (`-`: does not), and issues the next instruction 4 cycles later. `/* &desc=UR4 */` after
//! an instruction is an operand that nvdisasm never prints; relocations are shown there too.

use super::decode::control;
use super::{ArgKind, Ctrl, Inst, decode, encode, hidden, parse, text as inst_text};
use crate::cubin::{Cubin, Function};
use crate::sorted::SortedMap;
use crate::tables::Target;
use serde::Serialize;
use std::fmt::Write;

/// Bytes of a word.
const WORD: u64 = 16;

#[derive(Serialize)]
struct File {
    target: &'static str,
    functions: Vec<Listed>,
}

#[derive(Serialize)]
struct Listed {
    name: String,
    /// Names by byte offset, including the function's own.
    labels: SortedMap<u64, String>,
    instructions: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    /// Bytes from the start of the function.
    offset: u64,
    word: String,
    /// As nvdisasm prints it.
    text: String,
    /// Hidden operands and modifiers, as the assembler expects them after the text.
    #[serde(skip_serializing_if = "String::is_empty")]
    hidden: String,
    control: Control,
    /// The word that the text, the hidden operands and the control field assemble to.
    reencoded: Option<String>,
    /// Why the word does not decode, or its text does not assemble back.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    relocations: Vec<String>,
}

#[derive(Serialize)]
struct Control {
    /// Scoreboards to wait for.
    wait: Vec<u8>,
    /// Scoreboard set when the sources have been read.
    read_barrier: Option<u8>,
    /// Scoreboard set when the result is written.
    write_barrier: Option<u8>,
    /// Whether the warp keeps its issue slot (no yield).
    stay: bool,
    /// Stall in cycles.
    stall: u8,
}

/// The listing as text. Fails if the tables have no decoder for the target.
pub fn text(cubin: &Cubin) -> Result<String, String> {
    let file = list(cubin)?;
    let mut out = format!("\t.target\t{}\n", file.target);
    for function in &file.functions {
        print_function(function, &mut out);
    }
    Ok(out)
}

/// The listing as a JSON object: `target`, and per function `name`, `labels` (byte offset to name)
/// and `instructions` (`offset`, `word`, `text`, `control`, `reencoded`, and if present `hidden`,
/// `error`, `relocations`).
pub fn json(cubin: &Cubin) -> Result<String, String> {
    serde_json::to_string_pretty(&list(cubin)?).map_err(|error| error.to_string())
}

fn print_function(function: &Listed, out: &mut String) {
    let _ = writeln!(out, "\n.text.{}:", function.name);
    let end = function.instructions.len() as u64 * WORD;
    for line in &function.instructions {
        if let Some(label) = function.labels.get(&line.offset) {
            let _ = writeln!(out, "{label}:");
        }
        let _ = write!(out, "        /*{:04x}*/  {}  {} ;", line.offset, line.control, line.text);
        let notes = [line.hidden.clone(), line.relocations.join(", ")];
        for note in notes.iter().filter(|n| !n.is_empty()) {
            let _ = write!(out, " /* {note} */");
        }
        out.push('\n');
    }
    if let Some(label) = function.labels.get(&end) {
        let _ = writeln!(out, "{label}:");
    }
}

fn list(cubin: &Cubin) -> Result<File, String> {
    let name = format!("sm_{}{}", cubin.sm, if cubin.accelerator { "a" } else { "" });
    let target = Target::by_name(&name).ok_or_else(|| format!("the cubin is for {name}, which is no target"))?;
    if target.generation.is_none() {
        return Err(format!("{name} has no decoder yet"));
    }
    let mut next = 0;
    let functions = cubin.functions.iter().map(|f| list_function(target, f, &mut next)).collect();
    Ok(File { target: target.name, functions })
}

fn list_function(target: &Target, function: &Function, next: &mut usize) -> Listed {
    let words: Vec<u128> = function.code.chunks(WORD as usize).map(word).collect();
    let decoded: Vec<_> = words.iter().map(|word| decode(target, *word)).collect();
    let labels = labels(function, &decoded, next);
    let offsets: SortedMap<&str, u64> = labels.iter().map(|(at, name)| (name.as_str(), *at)).collect();
    let named = |at: u64| labels.get(&at).cloned();
    let address = |name: &str| offsets.get(name).copied();
    let line = |(i, (word, decoded)): (usize, (&u128, &Result<Inst, _>))| {
        let offset = i as u64 * WORD;
        let mut line = Line {
            offset,
            word: hex(*word),
            text: format!(".word {}", hex(*word)),
            hidden: String::new(),
            control: Control::of(&control(*word)),
            reencoded: None,
            error: None,
            relocations: relocations(function, offset),
        };
        match decoded.as_ref().map_err(|error: &super::DecodeError| error.message.clone()) {
            Ok(inst) => {
                line.text = inst_text(target, inst, offset, Some(&named));
                line.hidden = hidden(target, inst).trim_start().to_string();
                let whole = format!("{} {}", line.text, line.hidden);
                match assemble(target, &whole, offset, &address, inst.ctrl) {
                    Ok(word) => line.reencoded = Some(hex(word)),
                    Err(message) => line.error = Some(message),
                }
            }
            Err(message) => line.error = Some(message),
        }
        line
    };
    let instructions = words.iter().zip(&decoded).enumerate().map(line).collect();
    Listed { name: function.name.clone(), labels, instructions }
}

fn assemble(
    target: &Target,
    line: &str,
    offset: u64,
    address: &dyn Fn(&str) -> Option<u64>,
    ctrl: Ctrl,
) -> Result<u128, String> {
    let inst = parse(target, line, offset, Some(address)).map_err(|error| error.message)?;
    encode(target, &Inst { ctrl, ..inst }).map_err(|error| error.message)
}

/// Names by byte offset: the function, the symbols inside it, and branch targets. A target outside
/// the code or inside a word gets no name.
fn labels<E>(function: &Function, decoded: &[Result<Inst, E>], next: &mut usize) -> SortedMap<u64, String> {
    let end = decoded.len() as u64 * WORD;
    let mut labels = SortedMap::from([(0, function.name.clone())]);
    labels.extend(function.labels.iter().map(|label| (label.offset, label.name.clone())));
    let mut targets = Vec::new();
    for (i, inst) in decoded.iter().enumerate() {
        let Ok(inst) = inst else { continue };
        let distances = inst.args.iter().filter(|arg| arg.kind == ArgKind::Label).map(|arg| arg.val);
        targets.extend(distances.map(|distance| (i as u64 * WORD + WORD).wrapping_add(distance)));
    }
    targets.extend(function.sites.indirect_branches.iter().flat_map(|b| b.targets.iter().map(|t| u64::from(*t))));
    targets.retain(|at| at % WORD == 0 && *at <= end && !labels.contains_key(at));
    targets.sort_unstable();
    targets.dedup();
    for at in targets {
        labels.insert(at, format!(".L_x_{next}"));
        *next += 1;
    }
    labels
}

fn relocations(function: &Function, offset: u64) -> Vec<String> {
    let here = function.code_relocs.iter().filter(|r| r.offset / WORD * WORD == offset);
    here.map(|r| format!("relocation {} of {}{:+}", r.kind, r.symbol, r.addend)).collect()
}

/// Little endian; missing bytes at the end of a truncated file are zero.
fn word(bytes: &[u8]) -> u128 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u128::from(*byte))
}

fn hex(word: u128) -> String {
    format!("{word:#034x}")
}

impl Control {
    fn of(ctrl: &Ctrl) -> Control {
        // Scoreboard number 7 means none.
        let barrier = |n: u8| (n != 7).then_some(n);
        Control {
            wait: (0..6).filter(|i| ctrl.wait >> i & 1 != 0).collect(),
            read_barrier: barrier(ctrl.read_bar),
            write_barrier: barrier(ctrl.write_bar),
            stay: ctrl.stay,
            stall: ctrl.stall,
        }
    }
}

impl std::fmt::Display for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[B")?;
        for i in 0..6u8 {
            f.write_char(if self.wait.contains(&i) { char::from(b'0' + i) } else { '-' })?;
        }
        let barrier = |n: Option<u8>| n.map_or('-', |n| char::from(b'0' + n));
        let (read, write) = (barrier(self.read_barrier), barrier(self.write_barrier));
        write!(f, ":R{read}:W{write}:{}:S{:02}]", if self.stay { '-' } else { 'Y' }, self.stall)
    }
}
