//! Collects the source lines of a PTX text for the line tables of the cubin.
//!
//! The result has the files, the `.loc` places with their inlined calls, and the place of each PTX
//! line. The front end has checked that each `inlined_at` names an earlier place and each
//! `function_name` a label of `.debug_str`.

use crate::cubin::lines::{self, LineInfo, NAMES, Placement, SourceFile, SourcePlace};
use crate::cubin::{Cubin, ElfKind};
use crate::diag::Diagnostic;
use crate::ptx::ast::{DebugSection, Location, Module, Statement};
use crate::sorted::SortedMap;
use crate::tables::elf::ElfTarget;

/// The error if line tables are requested for several texts in one cubin.
pub const OF_SEVERAL: &str = "No line tables are written for several inputs";

/// The warning if there is nothing to suppress.
const NOTHING_TO_SUPPRESS: &str =
    "Option suppress-debug-info requires option device-debug or lineinfo; ignoring since latter is not specified";

/// Warns that suppressed line tables would not exist anyway: there is no `.loc`, and none are
/// `wanted`.
pub fn nothing_to_suppress(module: &Module, wanted: bool) -> Option<Diagnostic> {
    (!wanted && !has_places(module)).then(|| Diagnostic::note(NOTHING_TO_SUPPRESS))
}

/// Whether the text has a `.loc`.
pub fn has_places(module: &Module) -> bool {
    let mut statements = module.functions.values().flat_map(|function| function.body.iter().flatten());
    statements.any(|statement| matches!(statement, Statement::Location(_)))
}

/// Adds the line tables to a cubin, if the text has a `.loc` or `always`.
pub fn add(cubin: &mut Cubin, module: &Module, text: &str, always: bool) {
    if !always && !has_places(module) {
        return;
    }
    let info = of(module, text);
    let placement = Placement {
        object: cubin.kind == ElfKind::Relocatable,
        split_relocs: ElfTarget::of_sm(cubin.sm).is_some_and(|target| target.layout.info().split_relocs),
    };
    cubin.kept.sections.extend(lines::sections(&cubin.functions, &info, placement));
}

/// Collects the line information of a module.
pub fn of(module: &Module, text: &str) -> LineInfo {
    let mut info = LineInfo { text: text.to_string(), ..LineInfo::default() };
    for file in &module.files {
        let name = file.name.trim_matches('"').to_string();
        let row = SourceFile { name, time: file.timestamp.unwrap_or(0), size: file.size.unwrap_or(0) };
        info.files.entry(file.index).or_insert(row);
    }
    let mut labels = SortedMap::new();
    for section in module.debug_sections.iter().filter(|s| s.name == NAMES) {
        labels.entry(NAMES.to_string()).or_insert(info.names.len() as i64);
        data(section, &mut info.names, &mut labels);
    }
    let mut last = SortedMap::new();
    for function in module.functions.values() {
        let mut now = None;
        for statement in function.body.iter().flatten() {
            match statement {
                Statement::Location(at) => now = Some(place(at, &mut info, &mut last, &labels)),
                Statement::Instruction(inst) => {
                    if let Some(now) = now {
                        info.at_line.entry(inst.pos.line).or_insert(now);
                    }
                }
                Statement::Label(_) | Statement::Pragma(_) => {}
            }
        }
    }
    info
}

/// Adds the place of a `.loc`; `last` maps file, line and column to the last such place.
fn place(
    at: &Location,
    info: &mut LineInfo,
    last: &mut SortedMap<(u32, u32, u32), usize>,
    labels: &SortedMap<String, i64>,
) -> usize {
    let call = at.inlined.as_ref().and_then(|inlined| {
        let caller = *last.get(&(inlined.file, inlined.line, inlined.column))?;
        let name = labels.get(&inlined.function_name)?.checked_add(inlined.name_offset)?;
        Some((caller, u64::try_from(name).ok()?))
    });
    info.places.push(SourcePlace { file: at.file, line: at.line, call });
    let number = info.places.len() - 1;
    last.insert((at.file, at.line, at.column), number);
    number
}

/// Appends the data lines of a section and records its labels. Items that are not numbers are
/// skipped: they would be addresses.
fn data(section: &DebugSection, bytes: &mut Vec<u8>, labels: &mut SortedMap<String, i64>) {
    for line in &section.lines {
        let mut rest = line.split_once("//").map_or(line.as_str(), |(code, _)| code).trim();
        if let Some((label, tail)) = rest.split_once(':') {
            labels.insert(label.trim().to_string(), bytes.len() as i64);
            rest = tail.trim();
        }
        let (kind, list) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let size = match kind {
            ".b8" => 1,
            ".b16" => 2,
            ".b32" => 4,
            ".b64" => 8,
            _ => continue,
        };
        for item in list.split(',') {
            let item = item.trim().trim_end_matches(';');
            let number = match item.strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16).ok(),
                None => item.parse::<i64>().ok().map(|n| n as u64),
            };
            bytes.extend_from_slice(&number.unwrap_or(0).to_le_bytes()[..size]);
        }
    }
}
