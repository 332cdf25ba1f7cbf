//! Finds out what the driver requires: loads and runs small cubins with one section or attribute
//! removed at a time.
//!
//! The input are the first launches of some tests/cases/exec/*.ron, which together have most
//! attributes. The output is a line of three columns for each part: `required` if the driver
//! rejects the rest or the kernel gives a wrong result, else `ignored`. A part that an earlier case
//! has too is not tried again. A section is removed by setting its type and size to zero, so that
//! the others keep their indices.

use super::card;
use super::case::right;
use object::LittleEndian as LE;
use object::elf::{FileHeader64, SectionHeader64};
use object::read::elf::{FileHeader, SectionHeader};
use sassafras::compile::{Options, compile};
use sassafras::gpu::Card;
use sassafras::sim::launch::{Launch, LaunchFile};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

/// The cases whose first kernels are used.
const CASES: [&str; 7] = [
    "saxpy",
    "clusters_multicast",
    "assertions",
    "max_registers",
    "calls_indirect",
    "large_parameters",
    "matrix_quarters",
];
/// SHT_CUDA_INFO.
const INFO: u32 = 0x7000_0000;

/// A part of a file: its name, and the file without it.
struct Part {
    name: String,
    without: Vec<u8>,
}

/// Tries all parts, each in a separate process.
pub fn experiment(child: impl Fn(&[&str]) -> String + Sync) -> String {
    let Ok(card) = card() else { return String::new() };
    let (mut known, mut jobs) = (BTreeSet::new(), Vec::new());
    for case in CASES {
        let Ok((bytes, launch)) = sample(&card, case) else {
            jobs.push((case, 0, "there is no such case".to_string()));
            continue;
        };
        for (number, part) in parts(&bytes).into_iter().enumerate() {
            if known.insert(part.name.replace(&launch.kernel, "*")) {
                jobs.push((case, number, part.name));
            }
        }
    }
    let verdict = |(case, number, name): &(&str, usize, String)| {
        let said = match child(&["loader", case, &number.to_string()]).lines().next() {
            Some("fine") => "ignored\t".to_string(),
            Some(line) => format!("required\t{line}"),
            None => "required\tno answer".to_string(),
        };
        format!("{case}: {name}\t{said}\n")
    };
    super::parallel(&jobs, verdict).concat()
}

/// Loads and runs a case's file without part `number`; prints `fine` or the error.
pub fn variant(case: &str, number: &str) -> ExitCode {
    let card = card().unwrap();
    let (bytes, launch) = sample(&card, case).unwrap();
    let part = parts(&bytes).swap_remove(number.parse().unwrap());
    match card.accepts(&part.without).and_then(|()| right(&card, &part.without, &launch)) {
        Ok(_) => println!("fine"),
        Err(error) => println!("{}", error.replace('\n', " ")),
    }
    ExitCode::SUCCESS
}

/// The cubin of a case's first launch for the GPU's target.
fn sample(card: &Card, case: &str) -> Result<(Vec<u8>, Launch), String> {
    let path = Path::new("tests/cases/exec").join(case).with_extension("ron");
    let mut file = LaunchFile::load(&path).map_err(|e| e.to_string())?;
    let text = std::fs::read_to_string(&file.module).map_err(|e| e.to_string())?;
    let target = card.target_for(&text).ok_or("no target for this card")?;
    let made = compile(&text, &Options::new(target.name)).map_err(|_| "it does not compile".to_string())?;
    Ok((made.cubin, file.launches.swap_remove(0)))
}

fn parts(bytes: &[u8]) -> Vec<Part> {
    let header = FileHeader64::<LE>::parse(bytes).unwrap();
    let table = header.sections(LE, bytes).unwrap();
    let start = header.e_shoff.get(LE) as usize;
    let size = size_of::<SectionHeader64<LE>>();
    let mut parts = Vec::new();
    for (index, section) in table.iter().enumerate().skip(1) {
        let name = String::from_utf8_lossy(table.section_name(LE, section).unwrap()).into_owned();
        let at = start + index * size;
        let mut without = bytes.to_vec();
        // sh_type and sh_size.
        without[at + 4..at + 8].fill(0);
        without[at + 32..at + 40].fill(0);
        parts.push(Part { name: format!("section {name}"), without });
        if section.sh_type(LE).0 == INFO {
            let data = section.data(LE, bytes).unwrap();
            parts.extend(attributes(bytes, &name, data, section.sh_offset(LE) as usize, at));
        }
    }
    parts
}

/// The file without each record of an attribute section: the later records move up.
fn attributes(bytes: &[u8], section: &str, data: &[u8], offset: usize, header: usize) -> Vec<Part> {
    let (mut at, mut parts) = (0, Vec::new());
    while at + 4 <= data.len() {
        let (format, id) = (data[at], data[at + 1]);
        // Format 4 has a size and a payload after the first four bytes; the others hold their value
        // within these.
        let more = if format == 4 { usize::from(u16::from_le_bytes([data[at + 2], data[at + 3]])) } else { 0 };
        let next = at + 4 + more;
        let mut without = bytes.to_vec();
        without.copy_within(offset + next..offset + data.len(), offset + at);
        let size = (data.len() - (next - at)) as u64;
        without[header + 32..header + 40].copy_from_slice(&size.to_le_bytes());
        parts.push(Part { name: format!("attribute {id:#04x} of {section}"), without });
        at = next;
    }
    parts
}
