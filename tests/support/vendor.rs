//! Runs NVIDIA's tools in `target/vendor` as a user would: words or files in, nvdisasm's output
//! back. Every caller skips with a message if they are missing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A tool's path, if it exists.
pub fn tool(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/vendor").join(name);
    path.exists().then_some(path)
}

/// A tool's path; without it, a message on the console.
#[allow(dead_code)] // Some tests say themselves what is skipped.
pub fn wanted(name: &str) -> Option<PathBuf> {
    let path = tool(name);
    if path.is_none() {
        println!("skipped: target/vendor/{name} is not installed");
    }
    path
}

/// The tool that knows a target (as in `90`): the newest for a target that PTX 9.0 does not have,
/// else the one of every other.
#[allow(dead_code)] // Not every test that shares this file asks about targets.
pub fn tool_of(name: &str, sm: &str) -> Option<PathBuf> {
    let target = sassafras::tables::Target::by_name(&format!("sm_{sm}"));
    if target.is_some_and(|t| t.min_ptx > (9, 0)) { tool(&format!("{NEWEST}/{name}")) } else { tool(name) }
}

/// The folder of the newest tools in `target/vendor`; what is directly there is 13.0.88.
pub const NEWEST: &str = "13.5";

/// A word that every target accepts (NOP), to replace one that was rejected.
const NOP: u128 = 0x000f_c000_0000_0000_0000_0000_0000_7918;

/// Texts of words in the raw mode of nvdisasm; `None` for a word that it rejects. `sm` has the form
/// `90`.
#[allow(dead_code)] // One test asks for each release by itself.
pub fn disassemble(words: &[u128], sm: &str) -> Vec<Option<String>> {
    let Some(nvdisasm) = tool_of("nvdisasm", sm) else { return vec![None; words.len()] };
    let mut texts = disassemble_with(&nvdisasm, words, sm);
    // The newest one knows opcodes that every target had already, such as CLMAD.
    let Some(newest) = tool(&format!("{NEWEST}/nvdisasm")).filter(|_| texts.iter().any(Option::is_none)) else {
        return texts;
    };
    for (text, other) in texts.iter_mut().zip(disassemble_with(&newest, words, sm)) {
        *text = text.take().or(other);
    }
    texts
}

/// The same, of one nvdisasm.
pub fn disassemble_with(nvdisasm: &Path, words: &[u128], sm: &str) -> Vec<Option<String>> {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("raw.bin");
    let mut list = words.to_vec();
    let mut refused = BTreeSet::new();
    for _ in 0..40 {
        let bytes: Vec<u8> = list.iter().flat_map(|w| w.to_le_bytes()).collect();
        std::fs::write(&path, bytes).expect("the words written");
        let run = Command::new(nvdisasm).args(["-b", &format!("SM{sm}"), "-hex", "-ndf"]).arg(&path).output();
        let run = run.expect("nvdisasm runs");
        if run.status.success() && !run.stdout.is_empty() {
            return texts(&String::from_utf8_lossy(&run.stdout), words.len(), &refused);
        }
        let errors = String::from_utf8_lossy(&run.stderr).into_owned();
        let bad: Vec<usize> = errors.split("at address 0x").skip(1).filter_map(address).map(|a| a / 16).collect();
        let before = refused.len();
        for i in bad.into_iter().filter(|i| *i < words.len()) {
            refused.insert(i);
            list[i] = NOP;
        }
        assert!(refused.len() > before, "nvdisasm -b SM{sm}: {errors}");
    }
    panic!("nvdisasm -b SM{sm} refuses words again and again");
}

fn address(text: &str) -> Option<usize> {
    let digits: String = text.chars().take_while(char::is_ascii_hexdigit).collect();
    usize::from_str_radix(&digits, 16).ok()
}

fn texts(output: &str, count: usize, refused: &BTreeSet<usize>) -> Vec<Option<String>> {
    let mut list = vec![None; count];
    for (at, _, text) in output.lines().filter_map(line) {
        let i = at as usize / 16;
        if i < count && !refused.contains(&i) {
            list[i] = Some(text);
        }
    }
    list
}

/// A line of `nvdisasm -hex`: address, low half of the word, text without the semicolon and with
/// single blanks.
pub fn line(line: &str) -> Option<(u64, u64, String)> {
    let rest = line.trim_start().strip_prefix("/*")?;
    let (at, rest) = rest.split_once("*/")?;
    let (text, rest) = rest.rsplit_once("/* 0x")?;
    let low = u64::from_str_radix(rest.split_once(' ')?.0, 16).ok()?;
    let at = u64::from_str_radix(at, 16).ok()?;
    Some((at, low, normal(text.trim().trim_end_matches(';'))))
}

/// Single blanks, and none between the brackets of a constant.
pub fn normal(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace("] [", "][").replace(" ,", ",")
}
