//! Reads launch descriptions.
//!
//! A description is a RON file `(module: "NAME.ptx", launches: [(kernel: …, grid: (x, y, z), block:
//! …, smem: …, tolerance: …, targets: ["sm_90", …], symbols: [("NAME", array(type: …, data: …)),
//! …], args: […]), …])`. An argument is one of these:
//! * a scalar, `u32(5)`;
//! * a structure passed by value, `struct([f32(1), array(type: s32, data: …), pad(4), at(0, 16),
//!   …])`;
//! * a buffer, `in(type: f32, data: …)`, `out(type: f32, expect: …)` or `inout(type: f32, data: …,
//!   expect: …)`, the last two optionally with their own `tolerance`;
//! * `at(0, 16)`, the address 16 bytes into the buffer of argument 0;
//! * `memory(in(…))` (or `out`, `inout`), a buffer that is no parameter, for others to point to; it
//!   counts among the arguments.
//!
//! The module `elements` parses data and expectations. Every error names file, line and column.

use super::{Arg, ElementType, Launch, Symbol, Tolerance, Within};
use crate::diag::Pos;
use ron::value::RawValue;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::{fmt, fs};

/// The launches of one module.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchFile {
    /// The PTX file, resolved relative to the description.
    pub module: PathBuf,
    /// The launches in file order.
    pub launches: Vec<Launch>,
}

/// What is wrong with a description, and where; there is no position if the file could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError {
    /// The file, as the caller named it.
    pub file: String,
    /// Line and column.
    pub pos: Option<Pos>,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pos {
            Some(pos) => write!(f, "{}:{}:{}: {}", self.file, pos.line, pos.col, self.message),
            None => write!(f, "{}: {}", self.file, self.message),
        }
    }
}

impl std::error::Error for LoadError {}

impl LaunchFile {
    /// Reads the description at `path`.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or the first mistake in it.
    pub fn load(path: &Path) -> Result<LaunchFile, LoadError> {
        let file = path.display().to_string();
        let text = fs::read_to_string(path).map_err(|error| LoadError {
            file: file.clone(),
            pos: None,
            message: format!("cannot read: {error}"),
        })?;
        let mut loaded = Self::parse(&file, &text)?;
        loaded.module = path.parent().unwrap_or(Path::new("")).join(&loaded.module);
        Ok(loaded)
    }

    /// Parses a description; `file` is the name in errors.
    ///
    /// # Errors
    ///
    /// The first mistake in the text.
    pub fn parse(file: &str, text: &str) -> Result<LaunchFile, LoadError> {
        let source = Source { file, text };
        let raw: RawFile = source.ron(text)?;
        let launches = raw.launches.iter().map(|l| source.launch(l)).collect::<Result<_, _>>()?;
        Ok(LaunchFile { module: raw.module.into(), launches })
    }
}

// Mirrors of the text for deserialization. A value whose type is stated elsewhere stays raw text,
// which keeps its position.

#[derive(Deserialize)]
#[serde(rename = "LaunchFile", deny_unknown_fields)]
struct RawFile<'a> {
    module: String,
    #[serde(borrow)]
    launches: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename = "Launch", deny_unknown_fields)]
struct RawLaunch<'a> {
    kernel: String,
    #[serde(borrow)]
    grid: &'a RawValue,
    #[serde(borrow)]
    block: &'a RawValue,
    #[serde(default)]
    smem: u32,
    #[serde(default)]
    tolerance: Tolerance,
    #[serde(default)]
    targets: Vec<String>,
    #[serde(default, borrow)]
    symbols: Vec<(String, &'a RawValue)>,
    #[serde(borrow)]
    args: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename = "Arg", rename_all = "lowercase", deny_unknown_fields)]
enum RawBuffer<'a> {
    In {
        r#type: ElementType,
        #[serde(borrow)]
        data: &'a RawValue,
    },
    Out {
        r#type: ElementType,
        #[serde(borrow)]
        expect: &'a RawValue,
        #[serde(default, deserialize_with = "some")]
        tolerance: Option<Tolerance>,
    },
    InOut {
        r#type: ElementType,
        #[serde(borrow)]
        data: &'a RawValue,
        #[serde(borrow)]
        expect: &'a RawValue,
        #[serde(default, deserialize_with = "some")]
        tolerance: Option<Tolerance>,
    },
}

/// Items of a structure other than scalars.
#[derive(Deserialize)]
#[serde(rename = "Item", rename_all = "lowercase", deny_unknown_fields)]
enum RawItem<'a> {
    Array {
        r#type: ElementType,
        #[serde(borrow)]
        data: &'a RawValue,
    },
    Pad(usize),
}

fn some<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Tolerance>, D::Error> {
    Tolerance::deserialize(deserializer).map(Some)
}

/// Largest padding in a structure in bytes; parameters are smaller.
const MOST_PADDING: usize = 1 << 15;

/// The byte that fills an output buffer before the launch.
const UNWRITTEN: u8 = 0xa5;

/// The text of a description. Every `&str` that its methods take is a slice of it, so that its
/// position can be computed.
pub(super) struct Source<'a> {
    file: &'a str,
    text: &'a str,
}

impl<'a> Source<'a> {
    /// An error at the start of a slice of the text.
    pub(super) fn error(&self, part: &str, message: impl Into<String>) -> LoadError {
        let offset = (part.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize).min(self.text.len());
        let before = &self.text.as_bytes()[..offset];
        let line = 1 + before.iter().filter(|b| **b == b'\n').count() as u32;
        let col = 1 + before.iter().rev().take_while(|b| **b != b'\n').count() as u32;
        LoadError { file: self.file.into(), pos: Some(Pos { line, col }), message: message.into() }
    }

    /// Parses a slice of the text as RON.
    pub(super) fn ron<T: Deserialize<'a>>(&self, part: &'a str) -> Result<T, LoadError> {
        ron::from_str(part).map_err(|error| {
            // RON counts lines from 1 and columns in characters from 1.
            let start = error.span.start;
            let line = part.split_inclusive('\n').nth(start.line.saturating_sub(1)).unwrap_or("");
            let rest = line.char_indices().nth(start.col.saturating_sub(1)).map_or("", |(i, _)| &line[i..]);
            let rest = if rest.is_empty() { &part[part.len()..] } else { rest };
            self.error(rest, error.code.to_string())
        })
    }

    fn launch(&self, raw: &'a RawValue) -> Result<Launch, LoadError> {
        let text = trimmed(raw);
        let raw: RawLaunch = self.ron(text)?;
        let (grid, block) = (self.size(raw.grid)?, self.size(raw.block)?);
        let threads: u64 = block.iter().map(|n| u64::from(*n)).product();
        if threads > 1024 {
            return Err(self.error(trimmed(raw.block), format!("{threads} threads in a block; at most 1024")));
        }
        let mut args = Vec::new();
        for raw in &raw.args {
            args.push(self.arg(raw, &args)?);
        }
        let symbol =
            |(name, raw): &(String, &'a RawValue)| Ok(Symbol { name: name.clone(), bytes: self.item(trimmed(raw))? });
        let symbols = raw.symbols.iter().map(symbol).collect::<Result<_, _>>()?;
        let RawLaunch { kernel, smem, tolerance, targets, .. } = raw;
        Ok(Launch { kernel, grid, block, smem, tolerance, targets, symbols, args })
    }

    fn size(&self, raw: &'a RawValue) -> Result<[u32; 3], LoadError> {
        let text = trimmed(raw);
        let (x, y, z): (u32, u32, u32) = self.ron(text)?;
        if x == 0 || y == 0 || z == 0 {
            return Err(self.error(text, "a size must not be 0"));
        }
        if x > i32::MAX as u32 || y > 65535 || z > 65535 {
            return Err(self.error(text, "a size is at most 2147483647 in x and 65535 in y and z"));
        }
        Ok([x, y, z])
    }

    /// Parses an argument; `before` are the arguments before it.
    fn arg(&self, raw: &'a RawValue, before: &[Arg]) -> Result<Arg, LoadError> {
        let text = trimmed(raw);
        let (name, rest) = head(text);
        if let Some(ty) = ElementType::from_name(name) {
            return Ok(Arg::Scalar { ty, bytes: self.item(text)? });
        }
        match name {
            "in" | "out" | "inout" => self.buffer(self.ron(text)?),
            "struct" => self.structure(rest, before),
            "memory" => {
                let (inner,): (&'a RawValue,) = self.ron(rest)?;
                match self.arg(inner, before)? {
                    Arg::Buffer { ty, bytes, expect, tolerance, .. } => {
                        Ok(Arg::Buffer { ty, bytes, expect, tolerance, parameter: false })
                    }
                    _ => Err(self.error(text, "expected memory(in(…)), memory(out(…)) or memory(inout(…))")),
                }
            }
            "at" => self.address(text, rest, before).map(|(arg, offset)| Arg::Within { arg, offset }),
            _ => {
                let known = "a scalar (u8 to f64), struct, in, out, inout, memory or at";
                Err(self.error(text, format!("`{name}` is not a kind of argument; expected {known}")))
            }
        }
    }

    /// Parses the buffer and offset of an address; `before` are the arguments before it.
    fn address(&self, text: &'a str, rest: &'a str, before: &[Arg]) -> Result<(usize, u64), LoadError> {
        let (arg, offset): (usize, u64) = self.ron(rest)?;
        match before.get(arg) {
            Some(Arg::Buffer { .. }) => Ok((arg, offset)),
            _ => Err(self.error(text, format!("argument {arg} is no buffer before this one"))),
        }
    }

    /// Parses a structure; one without addresses is a scalar of bytes.
    fn structure(&self, rest: &'a str, before: &[Arg]) -> Result<Arg, LoadError> {
        let items: (Vec<&'a RawValue>,) = self.ron(rest)?;
        let (mut bytes, mut addresses) = (Vec::new(), Vec::new());
        for item in items.0 {
            let text = trimmed(item);
            match head(text) {
                ("at", rest) => {
                    let (arg, offset) = self.address(text, rest, before)?;
                    addresses.push(Within { at: bytes.len(), arg, offset });
                    bytes.extend([0; size_of::<u64>()]);
                }
                _ => bytes.extend(self.item(text)?),
            }
        }
        if addresses.is_empty() {
            return Ok(Arg::Scalar { ty: ElementType::U8, bytes });
        }
        Ok(Arg::Struct { bytes, addresses })
    }

    /// Parses a scalar or another item of a structure to bytes.
    fn item(&self, text: &'a str) -> Result<Vec<u8>, LoadError> {
        let mut bytes = Vec::new();
        let (name, rest) = head(text);
        if let Some(ty) = ElementType::from_name(name) {
            let inner = rest.strip_prefix('(').and_then(|r| r.strip_suffix(')'));
            let inner = inner.ok_or_else(|| self.error(rest, format!("expected {}(NUMBER)", ty.name())))?.trim();
            ty.put(self.number(ty, inner)?, &mut bytes);
            return Ok(bytes);
        }
        match self.ron(text)? {
            RawItem::Array { r#type, data } => {
                self.elements(r#type, data)?.iter().for_each(|bits| r#type.put(*bits, &mut bytes))
            }
            RawItem::Pad(n) if n > MOST_PADDING => {
                return Err(self.error(text, format!("{n} bytes of padding are more than {MOST_PADDING}")));
            }
            RawItem::Pad(n) => bytes.resize(n, 0),
        }
        Ok(bytes)
    }

    fn buffer(&self, raw: RawBuffer<'a>) -> Result<Arg, LoadError> {
        let (ty, data, expect, tolerance) = match raw {
            RawBuffer::In { r#type, data } => (r#type, Some(data), None, None),
            RawBuffer::Out { r#type, expect, tolerance } => (r#type, None, Some(expect), tolerance),
            RawBuffer::InOut { r#type, data, expect, tolerance } => (r#type, Some(data), Some(expect), tolerance),
        };
        let data = data.map(|data| self.elements(ty, data)).transpose()?;
        let expected = expect.map(|e| self.expected(ty, e, data.as_ref().map(Vec::len))).transpose()?;
        let mut bytes = Vec::new();
        match (data, &expected) {
            (Some(data), _) => data.iter().for_each(|bits| ty.put(*bits, &mut bytes)),
            (None, Some(expected)) => bytes.resize(expected.len() * ty.size(), UNWRITTEN),
            (None, None) => {}
        }
        let n = bytes.len() / ty.size();
        if let (Some(raw), Some(expected)) = (expect, &expected)
            && expected.len() != n
        {
            let message = format!("{} expected numbers for a buffer of {n}", expected.len());
            return Err(self.error(trimmed(raw), message));
        }
        Ok(Arg::Buffer { ty, bytes, expect: expected, tolerance, parameter: true })
    }
}

/// Splits a value into its leading name and the rest.
fn head(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(text.len());
    (&text[..end], text[end..].trim())
}

/// The text of a value without surrounding whitespace and comments.
pub(super) fn trimmed(raw: &RawValue) -> &str {
    raw.trim().get_ron()
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
