//! Text cases of single phases: `tests/cases/phases/*.ori`.
//!
//! A case is a comment about its purpose, a line `# phases: NAME ...`, an Ori function, a line
//! `----`, and the exact function that the phases must produce. `SASSAFRAS_BLESS=1` rewrites the
//! last part; review it before committing.

use crate::cases;
use sassafras::ori::{text, verify};
use sassafras::pass;
use std::path::Path;

use crate::cases::MARK;

#[test]
fn phases_do_what_their_cases_say() {
    cases::all("phases", case);
}

fn case(path: &Path) -> Result<(), String> {
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let source = std::fs::read_to_string(path).map_err(|e| format!("{name}: {e}"))?;
    let (head, expected) = source.split_once(MARK).ok_or_else(|| format!("{name}: no line ----"))?;
    let phases = head.lines().find_map(|l| l.strip_prefix("# phases: ")).ok_or_else(|| format!("{name}: no phases"))?;
    // Comments become empty lines, so that line numbers in messages match the file.
    let body: String = head.lines().skip_while(|l| l.starts_with('#')).map(|l| format!("{l}\n")).collect();
    let mut function = text::parse(&body).map_err(|e| format!("{name}: {e}"))?;
    let wrong = verify::verify(&function);
    if !wrong.is_empty() {
        return Err(format!("{name}: input: {}", wrong.join("\n")));
    }
    for phase in phases.split_whitespace() {
        pass::run_one(&mut function, phase).map_err(|e| format!("{name}: {phase}: {e}\n{}", text::print(&function)))?;
    }
    let got = text::print(&function);
    if std::env::var_os("SASSAFRAS_BLESS").is_some() {
        return std::fs::write(path, format!("{head}{MARK}{got}")).map_err(|e| format!("{name}: {e}"));
    }
    if got == expected { Ok(()) } else { Err(format!("{name}: expected\n{expected}got\n{got}")) }
}
