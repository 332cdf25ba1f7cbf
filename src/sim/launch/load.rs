//! Reading launch descriptions.
//!
//! Input: a RON file `(module: "NAME.ptx", launches: [(kernel: …, grid: (x, y, z), block: …, smem: …, args: […]), …])`. An
//! argument is a scalar, `u32(5)`, or a buffer, `in(type: f32, data: …)`, `out(type: f32, expect: …)` or
//! `inout(type: f32, data: …, expect: …)`; data and expect are a list of numbers, `iota(n, start, step)`,
//! `fill(n, value)` or `lcg(n, seed, mask)`. Output: [`LaunchFile`]. Invariant: every error names file, line and column.

use super::{Arg, ElementType, Expected, Launch, Tolerance};
use crate::diag::Pos;
use ron::value::RawValue;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::{fmt, fs};

/// The launches of one module.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchFile {
    /// The PTX file, its path relative to the description resolved.
    pub module: PathBuf,
    pub launches: Vec<Launch>,
}

/// What is wrong with a description, and where; no position where the file could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError {
    pub file: String,
    pub pos: Option<Pos>,
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

    /// Reads a description from its text; `file` is the name that errors give.
    pub fn parse(file: &str, text: &str) -> Result<LaunchFile, LoadError> {
        let source = Source { file, text };
        let raw: RawFile = source.ron(text)?;
        let launches = raw.launches.iter().map(|l| source.launch(l)).collect::<Result<_, _>>()?;
        Ok(LaunchFile { module: raw.module.into(), launches })
    }
}

// The mirror of the text. Values whose meaning depends on a type elsewhere stay text, which keeps their place.

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
    },
    InOut {
        r#type: ElementType,
        #[serde(borrow)]
        data: &'a RawValue,
        #[serde(borrow)]
        expect: &'a RawValue,
    },
}

#[derive(Deserialize)]
#[serde(rename = "Generator", rename_all = "lowercase")]
enum RawGenerator<'a> {
    Iota(usize, #[serde(borrow)] &'a RawValue, #[serde(borrow)] &'a RawValue),
    Fill(usize, #[serde(borrow)] &'a RawValue),
    Lcg(usize, u64, u64),
}

/// The most elements of one buffer: a mistyped size is a message, not a machine out of memory.
const MOST_ELEMENTS: usize = 1 << 28;

/// What an output buffer holds before the launch, in every byte.
const UNWRITTEN: u8 = 0xa5;

/// The whole text of a description. Every `&str` handed around below is a part of it, so that its place is known.
struct Source<'a> {
    file: &'a str,
    text: &'a str,
}

impl<'a> Source<'a> {
    /// An error at the start of a part of the text.
    fn error(&self, part: &str, message: impl Into<String>) -> LoadError {
        let offset = (part.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize).min(self.text.len());
        let before = &self.text.as_bytes()[..offset];
        let line = 1 + before.iter().filter(|b| **b == b'\n').count() as u32;
        let col = 1 + before.iter().rev().take_while(|b| **b != b'\n').count() as u32;
        LoadError { file: self.file.into(), pos: Some(Pos { line, col }), message: message.into() }
    }

    /// Reads a part of the text as RON.
    fn ron<T: Deserialize<'a>>(&self, part: &'a str) -> Result<T, LoadError> {
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
        let args = raw.args.iter().map(|a| self.arg(a)).collect::<Result<_, _>>()?;
        Ok(Launch { kernel: raw.kernel, grid, block, smem: raw.smem, tolerance: raw.tolerance, args })
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

    fn arg(&self, raw: &'a RawValue) -> Result<Arg, LoadError> {
        let text = trimmed(raw);
        let name = text.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or("");
        if let Some(ty) = ElementType::from_name(name) {
            return self.scalar(ty, text[name.len()..].trim());
        }
        if !["in", "out", "inout"].contains(&name) {
            let known = "a scalar (u8 to f64), in, out or inout";
            return Err(self.error(text, format!("`{name}` is not a kind of argument; expected {known}")));
        }
        self.buffer(self.ron(text)?)
    }

    fn scalar(&self, ty: ElementType, rest: &'a str) -> Result<Arg, LoadError> {
        let inner = rest.strip_prefix('(').and_then(|r| r.strip_suffix(')'));
        let inner = inner.ok_or_else(|| self.error(rest, format!("expected {}(NUMBER)", ty.name())))?.trim();
        let mut bytes = Vec::new();
        ty.put(self.number(ty, inner)?, &mut bytes);
        Ok(Arg::Scalar { ty, bytes })
    }

    fn buffer(&self, raw: RawBuffer<'a>) -> Result<Arg, LoadError> {
        let (ty, data, expect) = match raw {
            RawBuffer::In { r#type, data } => (r#type, Some(data), None),
            RawBuffer::Out { r#type, expect } => (r#type, None, Some(expect)),
            RawBuffer::InOut { r#type, data, expect } => (r#type, Some(data), Some(expect)),
        };
        let expected = expect.map(|e| self.expected(ty, e)).transpose()?;
        let mut bytes = Vec::new();
        match (data, &expected) {
            (Some(data), _) => self.elements(ty, data)?.iter().for_each(|bits| ty.put(*bits, &mut bytes)),
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
        Ok(Arg::Buffer { ty, bytes, expect: expected })
    }

    fn expected(&self, ty: ElementType, raw: &'a RawValue) -> Result<Vec<Expected>, LoadError> {
        let text = trimmed(raw);
        if !text.starts_with('[') {
            return Ok(self.elements(ty, raw)?.into_iter().map(Expected::Bits).collect());
        }
        let one = |number: &&'a RawValue| match trimmed(number) {
            "nan" if ty.is_float() => Ok(Expected::Nan),
            text => self.number(ty, text).map(Expected::Bits),
        };
        self.ron::<Vec<&RawValue>>(text)?.iter().map(one).collect()
    }

    /// A list of numbers or a generator, as the elements' bits.
    fn elements(&self, ty: ElementType, raw: &'a RawValue) -> Result<Vec<u64>, LoadError> {
        let text = trimmed(raw);
        if text.starts_with('[') {
            return self.ron::<Vec<&RawValue>>(text)?.iter().map(|n| self.number(ty, trimmed(n))).collect();
        }
        let generator: RawGenerator = self.ron(text)?;
        let (RawGenerator::Iota(n, ..) | RawGenerator::Fill(n, _) | RawGenerator::Lcg(n, ..)) = generator;
        if n > MOST_ELEMENTS {
            return Err(self.error(text, format!("{n} elements are more than {MOST_ELEMENTS}")));
        }
        match generator {
            RawGenerator::Iota(n, start, step) => {
                ty.iota(n, trimmed(start), trimmed(step)).map_err(|message| self.error(text, message))
            }
            RawGenerator::Fill(n, value) => Ok(vec![self.number(ty, trimmed(value))?; n]),
            RawGenerator::Lcg(n, seed, mask) => Ok(ty.lcg(n, seed, mask)),
        }
    }

    fn number(&self, ty: ElementType, text: &'a str) -> Result<u64, LoadError> {
        ty.parse(text).map_err(|message| self.error(text, message))
    }
}

/// A value's text without the blanks and comments around it.
fn trimmed(raw: &RawValue) -> &str {
    raw.trim().get_ron()
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
