//! Finds out what the driver requires: loads and runs a small cubin with one section or attribute
//! removed at a time.
//!
//! The input is tests/cases/exec/saxpy.ron. The output is a line of three columns for each part:
//! `required` if the driver rejects the rest or the kernel gives a wrong result, else `ignored`. A
//! section is removed by setting its type and size to zero, so that the others keep their indices.

use super::card;
use super::case::on;
use object::LittleEndian as LE;
use object::elf::{FileHeader64, SectionHeader64};
use object::read::elf::{FileHeader, SectionHeader};
use sassafras::compile::{Options, compile};
use sassafras::gpu::Card;
use sassafras::sim::launch::LaunchFile;
use std::path::Path;
use std::process::ExitCode;

/// The case whose kernel is used.
const CASE: &str = "tests/cases/exec/saxpy.ron";
/// SHT_CUDA_INFO.
const INFO: u32 = 0x7000_0000;

/// A part of a file: its name, and the file without it.
struct Part {
    name: String,
    without: Vec<u8>,
}

/// Tries all parts, each in a separate process.
pub fn experiment(child: impl Fn(&[&str]) -> String) -> String {
    let Ok(card) = card() else { return String::new() };
    let parts = sample(&card).map(|bytes| parts(&bytes)).unwrap_or_default();
    drop(card);
    let verdict = |i: usize| match child(&["loader", &i.to_string()]).lines().next() {
        Some("fine") => "ignored\t".to_string(),
        Some(line) => format!("required\t{line}"),
        None => "required\tno answer".to_string(),
    };
    parts.iter().enumerate().map(|(i, part)| format!("{}\t{}\n", part.name, verdict(i))).collect()
}

/// Loads and runs the file without part `number`; prints `fine` or the error.
pub fn variant(number: &str) -> ExitCode {
    let card = card().unwrap();
    let bytes = sample(&card).unwrap();
    let part = parts(&bytes).swap_remove(number.parse().unwrap());
    let file = LaunchFile::load(Path::new(CASE)).unwrap();
    let launch = &file.launches[0];
    match card.accepts(&part.without).and_then(|()| on(&card, &part.without, launch, launch)) {
        Ok(_) => println!("fine"),
        Err(error) => println!("{}", error.replace('\n', " ")),
    }
    ExitCode::SUCCESS
}

fn sample(card: &Card) -> Result<Vec<u8>, String> {
    let file = LaunchFile::load(Path::new(CASE)).map_err(|e| e.to_string())?;
    let text = std::fs::read_to_string(&file.module).map_err(|e| e.to_string())?;
    let target = card.target_for(&text).ok_or("no target for this card")?;
    compile(&text, &Options::new(target.name)).map(|o| o.cubin).map_err(|_| "it does not compile".to_string())
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
