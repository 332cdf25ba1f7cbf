//! Reads and writes attribute records: a format byte, an id, then a value or a size and a payload.
//! Writing what was read gives the same bytes.

use super::bytes::Bytes;
use super::error::CubinError;
use super::model::Attribute;

/// Record formats: no value, one byte, two bytes, a sized payload.
pub const FORMAT_NONE: u8 = 1;
pub const FORMAT_BYTE: u8 = 2;
pub const FORMAT_HALF: u8 = 3;
pub const FORMAT_SIZED: u8 = 4;

/// Parses all records of a section.
pub fn read(section: Bytes<'_>) -> Result<Vec<Attribute>, CubinError> {
    let mut records = Vec::new();
    let mut at = 0;
    while at < section.len() {
        let (format, id) = (section.u8(at)?, section.u8(at + 1)?);
        let (start, size) = match format {
            FORMAT_NONE | FORMAT_BYTE | FORMAT_HALF => (at + 2, 2),
            FORMAT_SIZED => (at + 4, u64::from(section.u16(at + 2)?)),
            _ => return Err(CubinError::at(section.base() + at, format!("record format {format} is not 1 to 4"))),
        };
        records.push(Attribute { format, id, payload: section.slice(start, size)?.to_vec() });
        at = start + size;
    }
    Ok(records)
}

/// Largest number of 32-bit words in a record. With more exits than that ptxas lists only some;
/// with more branch targets it omits the record of the branch.
pub const MOST_WORDS: usize = u16::MAX as usize / 4;

/// Appends one record. A payload of format 1 to 3 is two bytes.
pub fn write(out: &mut Vec<u8>, record: &Attribute) -> Result<(), CubinError> {
    out.extend([record.format, record.id]);
    if record.format == FORMAT_SIZED {
        let size = u16::try_from(record.payload.len()).map_err(|_| {
            CubinError::model(format!("attribute {:#04x} has {} bytes, over 65535", record.id, record.payload.len()))
        })?;
        out.extend(size.to_le_bytes());
        out.extend(&record.payload);
        return Ok(());
    }
    let mut value = record.payload.clone();
    value.resize(2, 0);
    out.extend(value);
    Ok(())
}
