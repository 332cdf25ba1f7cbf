//! Bounds-checked little-endian reads from a range of a file.
//!
//! A [`Bytes`] knows its offset in the file, so that errors name file offsets; no access leaves the
//! range. (By default the readers of `object` require aligned memory, which an arbitrary slice does
//! not have.)

use super::error::CubinError;

/// A range of a file.
#[derive(Clone, Copy)]
pub struct Bytes<'a> {
    data: &'a [u8],
    base: u64,
}

impl<'a> Bytes<'a> {
    /// A whole file.
    pub fn new(data: &'a [u8]) -> Self {
        Bytes { data, base: 0 }
    }

    /// A range that begins at offset `base` of its file.
    pub fn at(data: &'a [u8], base: u64) -> Self {
        Bytes { data, base }
    }

    /// Offset of the range in its file.
    pub fn base(self) -> u64 {
        self.base
    }

    /// Length in bytes.
    pub fn len(self) -> u64 {
        self.data.len() as u64
    }

    /// All bytes.
    pub fn all(self) -> &'a [u8] {
        self.data
    }

    /// `size` bytes at `offset` of the range.
    pub fn slice(self, offset: u64, size: u64) -> Result<&'a [u8], CubinError> {
        let range = usize::try_from(offset).ok().zip(usize::try_from(size).ok());
        range.and_then(|(start, size)| self.data.get(start..start.checked_add(size)?)).ok_or_else(|| {
            let at = self.base.saturating_add(offset);
            CubinError::at(at, format!("{size:#x} bytes here go past the end ({:#x})", self.base + self.len()))
        })
    }

    /// A subrange; `because` is the file offset that refers to it, for the error.
    pub fn range(self, offset: u64, size: u64, because: u64) -> Result<Bytes<'a>, CubinError> {
        match self.slice(offset, size) {
            Ok(data) => Ok(Bytes { data, base: self.base + offset }),
            Err(_) => {
                let text = format!("names bytes {offset:#x}+{size:#x}, past the end ({:#x})", self.len());
                Err(CubinError::at(because, text))
            }
        }
    }

    /// One byte.
    pub fn u8(self, offset: u64) -> Result<u8, CubinError> {
        Ok(self.slice(offset, 1)?[0])
    }

    /// Two bytes.
    pub fn u16(self, offset: u64) -> Result<u16, CubinError> {
        let mut figure = [0; 2];
        figure.copy_from_slice(self.slice(offset, 2)?);
        Ok(u16::from_le_bytes(figure))
    }

    /// Four bytes.
    pub fn u32(self, offset: u64) -> Result<u32, CubinError> {
        let mut figure = [0; 4];
        figure.copy_from_slice(self.slice(offset, 4)?);
        Ok(u32::from_le_bytes(figure))
    }

    /// Eight bytes.
    pub fn u64(self, offset: u64) -> Result<u64, CubinError> {
        let mut figure = [0; 8];
        figure.copy_from_slice(self.slice(offset, 8)?);
        Ok(u64::from_le_bytes(figure))
    }

    /// UTF-8 text up to a zero byte; `because` is the file offset that refers to it, for the error.
    pub fn text(self, offset: u64, because: u64) -> Result<String, CubinError> {
        let rest = usize::try_from(offset).ok().and_then(|start| self.data.get(start..)).unwrap_or_default();
        let bytes = rest.iter().position(|b| *b == 0).map(|end| &rest[..end]);
        let bytes = bytes.ok_or_else(|| CubinError::at(because, format!("no text at {offset:#x} of its table")))?;
        String::from_utf8(bytes.to_vec()).map_err(|_| CubinError::at(because, "a text is not UTF-8"))
    }
}

/// Appends an unsigned LEB128 number.
pub fn push_unsigned(bytes: &mut Vec<u8>, mut n: u64) {
    while n > 0x7f {
        bytes.push(n as u8 | 0x80);
        n >>= 7;
    }
    bytes.push(n as u8);
}

/// Appends a signed LEB128 number.
pub fn push_signed(bytes: &mut Vec<u8>, mut n: i64) {
    while !(-0x40..0x40).contains(&n) {
        bytes.push(n as u8 | 0x80);
        n >>= 7;
    }
    bytes.push(n as u8 & 0x7f);
}
