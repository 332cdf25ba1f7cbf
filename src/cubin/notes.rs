//! The notes (tool, target) and `.nv.compat`.
//!
//! Nothing here depends on a path or a clock. A reader returns a value only if writing it gives the
//! same bytes again.

use super::bytes::Bytes;
use super::error::CubinError;
use super::model::{Attribute, Cubin, ToolNote};
use super::records;
use crate::tables::elf::{COMPAT, CompatValue};

/// Owner of both notes.
const OWNER: &[u8; 12] = b"NVIDIA Corp\0";
/// Note types of `tkinfo` and `cuinfo`, and the version of both.
const TOOL_NOTE: u32 = 2000;
const TARGET_NOTE: u32 = 1000;
const VERSION: u32 = 2;

fn note(kind: u32, mut body: Vec<u8>) -> Vec<u8> {
    body.resize(body.len().next_multiple_of(4), 0);
    let mut out = Vec::new();
    for figure in [OWNER.len() as u32, body.len() as u32, kind] {
        out.extend(figure.to_le_bytes());
    }
    out.extend(OWNER);
    out.extend(body);
    out
}

/// The body of a note of this type.
fn body(bytes: &[u8], kind: u32) -> Option<Bytes<'_>> {
    let note = Bytes::new(bytes);
    let is_ours = note.u32(0).ok()? == 12 && note.u32(8).ok()? == kind && note.slice(12, 12).ok()? == OWNER;
    is_ours.then(|| note.range(24, note.u32(4).ok()?.into(), 4).ok())?
}

/// `.note.nv.tkinfo`: version, a table with the offsets of five texts (the object's name is empty),
/// the texts.
pub fn tool_note(tool: &ToolNote) -> Vec<u8> {
    let (mut table, mut places) = (vec![0u8], vec![VERSION, 0]);
    for text in [&tool.name, &tool.version, &tool.build, &tool.options] {
        places.push(table.len() as u32);
        table.extend(text.as_bytes());
        table.push(0);
    }
    let mut out: Vec<u8> = places.iter().flat_map(|place| place.to_le_bytes()).collect();
    out.extend(table);
    note(TOOL_NOTE, out)
}

/// Reads the tool note of a file.
pub fn read_tool_note(bytes: &[u8]) -> Option<ToolNote> {
    let body = body(bytes, TOOL_NOTE)?;
    let table = body.range(24, body.len().checked_sub(24)?, 0).ok()?;
    let text = |i: u64| table.text(body.u32(i * 4).ok()?.into(), 0).ok();
    let tool = ToolNote { name: text(2)?, version: text(3)?, build: text(4)?, options: text(5)? };
    (tool_note(&tool) == bytes).then_some(tool)
}

/// `.note.nv.cuinfo`: version, SM number of the PTX target, toolkit.
pub fn target_note(cubin: &Cubin) -> Vec<u8> {
    let mut out = ((cubin.ptx_sm & 0xffff) << 16 | VERSION).to_le_bytes().to_vec();
    out.extend(cubin.toolkit.to_le_bytes());
    note(TARGET_NOTE, out)
}

/// Reads the SM number of the PTX target and the toolkit version.
pub fn read_target_note(bytes: &[u8]) -> Option<(u32, u32)> {
    let body = body(bytes, TARGET_NOTE)?;
    let (first, toolkit) = (body.u32(0).ok()?, body.u32(4).ok()?);
    (first & 0xffff == VERSION && body.len() == 8).then_some((first >> 16, toolkit))
}

/// `.nv.compat` of files that follow a toolkit's rules.
pub fn compat(cubin: &Cubin) -> Result<Vec<u8>, CubinError> {
    let mut out = Vec::new();
    for row in COMPAT.iter().filter(|row| row.toolkit.is_none_or(|only| only == cubin.toolkit)) {
        let payload = match row.value {
            CompatValue::Bytes(bytes) => bytes.to_vec(),
            CompatValue::Accelerator => vec![cubin.accelerator.into()],
            CompatValue::Class => vec![cubin.isa_class.max(1)],
            CompatValue::Maps => vec![cubin.tensor_maps],
            CompatValue::Integers(without, with) => vec![if cubin.tensor_integers { with } else { without }],
        };
        records::write(&mut out, &Attribute { format: row.format, id: row.id, payload })?;
    }
    Ok(out)
}

/// Whether `.nv.compat` of a file marks the target as an accelerator.
pub fn read_accelerator(section: Bytes<'_>) -> Result<bool, CubinError> {
    let flag = COMPAT.iter().find(|row| row.value == CompatValue::Accelerator).map(|row| row.id);
    let records = records::read(section)?;
    Ok(records.iter().any(|r| Some(r.id) == flag && r.payload.first().is_some_and(|value| *value != 0)))
}

/// What the instructions of a file need, by its `.nv.compat`.
pub fn read_needs(cubin: &mut Cubin, section: Bytes<'_>) -> Result<(), CubinError> {
    for record in records::read(section)? {
        let row = COMPAT.iter().find(|row| row.id == record.id);
        match (row.map(|row| row.value), record.payload.first().copied()) {
            (Some(CompatValue::Class), Some(class)) => cubin.isa_class = if class == 1 { 0 } else { class },
            (Some(CompatValue::Maps), Some(uses)) => cubin.tensor_maps = uses,
            (Some(CompatValue::Integers(_, with)), Some(value)) => cubin.tensor_integers = value == with,
            _ => {}
        }
    }
    Ok(())
}
