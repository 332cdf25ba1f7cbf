//! The options about passes: `--print-phases`, `--time-passes`, `--disable-pass`, `--stop-after`.

use super::arguments::Arguments;
use super::options::Key;
use crate::compile::Options;
use crate::pass::dump::{PassRecord, passes_of};
use crate::tables::phases::{PhaseInfo, State};
use crate::tables::{Pass, Phase};
use std::fmt::Write;

/// Copies the command line's options about passes into the compiler's options.
///
/// # Errors
/// An unknown pass, or `--disable-pass` with a pass that is not optional.
pub fn apply(a: &Arguments, options: &mut Options) -> Result<(), String> {
    let pass = |name: &String| Pass::by_name(name).ok_or_else(|| format!("No pass is called '{name}'"));
    options.verify_ir = a.has(Key::VerifyIr);
    options.dump_phases = a.list(Key::DumpPhases);
    options.dump_before = a.list(Key::DumpBefore);
    options.dump_after = a.list(Key::DumpAfter);
    let known = |name: &String| {
        let phase = Phase::ALL.into_iter().any(|phase| phase.name() == name);
        if name == "all" || phase { Ok(()) } else { pass(name).map(|_| ()) }
    };
    options.dump_before.iter().chain(&options.dump_after).try_for_each(known)?;
    options.passes.disabled = a.list(Key::DisablePass).iter().map(pass).collect::<Result<_, _>>()?;
    if let Some(pass) = options.passes.disabled.iter().find(|pass| !pass.info().optional) {
        return Err(format!("Pass '{}' cannot be left out: the code is wrong without it", pass.name()));
    }
    options.passes.stop_after = a.value(Key::StopAfter).map(|name| pass(&name.to_string())).transpose()?;
    Ok(())
}

/// The 159 phases with their passes, and statistics of these if something was compiled.
pub fn phases(records: &[PassRecord]) -> String {
    let mut text = String::new();
    for phase in Phase::ALL {
        let _ = writeln!(text, "{:>3} {}{}", phase as u16, phase.name(), state(phase.info()));
        for pass in passes_of(phase) {
            let _ = writeln!(text, "      {}", line(pass, records.get(pass as usize)));
        }
    }
    text
}

/// Who does the work of a phase elsewhere, why nobody does, or what is missing.
fn state(info: &PhaseInfo) -> String {
    let (by, why) = (info.by, info.why);
    match info.state {
        State::Built if by.is_empty() => String::new(),
        State::Built => format!("  also done by {by}: {why}"),
        State::Elsewhere => format!("  done by {by}: {why}"),
        State::None => format!("  none: {why}"),
        State::Planned if by.is_empty() => format!("  planned: {why}"),
        State::Planned => format!("  planned, in part done by {by}: {why}"),
    }
}

/// The passes that ran, the longest first.
pub fn times(records: &[PassRecord]) -> String {
    let ran = |pass: &Pass| records.get(*pass as usize).is_some_and(|record| record.functions > 0);
    let mut passes: Vec<Pass> = Pass::ALL.into_iter().filter(ran).collect();
    crate::sorted::by_key(&mut passes, |pass| std::cmp::Reverse(records[*pass as usize].elapsed));
    passes.iter().map(|pass| line(*pass, records.get(*pass as usize)) + "\n").collect()
}

fn line(pass: Pass, record: Option<&PassRecord>) -> String {
    let name = pass.name();
    match record.filter(|record| record.functions > 0) {
        Some(r) => {
            let time = r.elapsed.as_secs_f64() * 1e3;
            format!("{name:<26} {time:>9.3} ms  {:>8} -> {:>8} instructions", r.before, r.after)
        }
        None => name.to_string(),
    }
}
