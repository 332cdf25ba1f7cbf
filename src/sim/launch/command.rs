//! Parses kernel arguments on the command line: `--arg u32:5`, `--arg in:x.bin`, …
//!
//! An argument is one of these, in the order of the kernel's parameters:
//! * `TYPE:NUMBER` with u8 … f64: a scalar.
//! * `in:PATH`: an input buffer; `out:PATH:BYTES`: an output buffer, zeroed at first;
//!   `inout:PATH[:OUT]`: a buffer that is written to OUT or back to PATH. The PATH of `inout` ends
//!   at its first colon, that of `out` at its last.
//! * `at:ARG:OFFSET`: an address in the buffer of an earlier argument ARG (counted from 0).
//! * `struct:ITEM,ITEM,…`: a structure of `TYPE:NUMBER`, `pad:BYTES` and `at:ARG:OFFSET`.
//! * `tensormap:ARG:OFFSET,TYPE,sizes=64x32,strides=256,box=16x8`: a tensor map of the tensor
//!   there, TYPE one of tensor_type.ron, strides in bytes; also `steps=1x2`, `swizzle=32` (or 64,
//!   128), `fill=nan`; of images, also `pixels=N`, `lower=-1x-1` and `upper=-1x-1`, the corners of
//!   the box of pixels.
//! * `texture:PATH,TYPE,SHAPE,sizes=64x32`: the handle of a texture of the texels in PATH, TYPE u8
//!   to f32, also `u8x4`, SHAPE one of 1d 2d 3d a1d a2d cube acube; also `layers=N`, `levels=N`,
//!   `address=wrap` (or mirror, clamp, border), `linear`, `mip` (levels are filtered), `normalized`
//!   and `float` (integers are read as floats), `samples=N`. `surface:PATH,…` is written back to
//!   PATH. `sampler:address=wrap,linear` is the handle of a sampler, with the items above that are
//!   not of texels.
//! * `memory:in:PATH` (or `out`, `inout`): a buffer that is no parameter, for others to point to;
//!   it counts among the arguments.

use super::{ArgValue, ElementType, Within};
use crate::sim::ops::tensor_map;
use crate::sim::ops::texture::{BYTES, KINDS, MODES, Shape, Texture, Use, bind};
use crate::tables::lowering::MAP_TYPES;
use std::fs;
use std::path::{Path, PathBuf};

/// An argument from the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandArg {
    /// The argument's value.
    pub value: ArgValue,
    /// The file that receives the buffer's bytes after the run.
    pub write_to: Option<PathBuf>,
    /// Bytes of a header before those of the file: of a surface.
    pub header: usize,
}

const FORMS: &str = "TYPE:NUMBER (u8 s8 u16 s16 u32 s32 u64 s64 f32 f64), in:PATH, out:PATH:BYTES, inout:PATH[:OUT], \
     memory:BUFFER, at:ARG:OFFSET, tensormap:ARG:OFFSET,TYPE,…, texture:PATH,TYPE,SHAPE,…, surface:PATH,TYPE,SHAPE,…, sampler:ITEM,… or struct:ITEM,…";

/// Parses one argument and reads the files of `in` and `inout`.
///
/// # Errors
///
/// A sentence that quotes the text.
pub fn parse_command_arg(text: &str) -> Result<CommandArg, String> {
    let wrong = |message: String| format!("argument `{text}`: {message}");
    let (kind, rest) = text.split_once(':').ok_or_else(|| wrong(format!("expected {FORMS}")))?;
    let buffer = |bytes: Vec<u8>, to: Option<&str>| CommandArg {
        value: ArgValue::Buffer { bytes, writable: to.is_some() },
        write_to: to.map(PathBuf::from),
        header: 0,
    };
    match kind {
        "in" => Ok(buffer(read(rest).map_err(wrong)?, None)),
        "inout" => {
            let (path, to) = rest.split_once(':').unwrap_or((rest, rest));
            if to.is_empty() {
                return Err(wrong("the path to write to is empty".into()));
            }
            Ok(buffer(read(path).map_err(wrong)?, Some(to)))
        }
        "out" => {
            let (path, size) =
                rest.rsplit_once(':').ok_or_else(|| wrong("expected out:PATH:BYTES, the size is missing".into()))?;
            if path.is_empty() {
                return Err(wrong("the path is empty".into()));
            }
            let size = parse_size(size).map_err(wrong)?;
            Ok(buffer(vec![0; size], Some(path)))
        }
        "memory" => {
            let CommandArg { value, write_to, header } = parse_command_arg(rest)?;
            let ArgValue::Buffer { bytes, writable } = value else {
                return Err(wrong("expected memory:in:…, memory:out:… or memory:inout:…".into()));
            };
            Ok(CommandArg { value: ArgValue::Memory { bytes, writable }, write_to, header })
        }
        "at" => {
            let (arg, offset) = parse_address(rest).map_err(wrong)?;
            Ok(CommandArg { value: ArgValue::Within { arg, offset }, write_to: None, header: 0 })
        }
        "texture" | "surface" => {
            let path = rest.split(',').next().unwrap_or_default();
            let texels = read(path).map_err(wrong)?;
            let used = if kind == "surface" { Use::Surface } else { Use::Texture };
            let bytes = parse_texture(rest, used, texels).map_err(wrong)?;
            Ok(CommandArg { header: BYTES, ..buffer(bytes, (kind == "surface").then_some(path)) })
        }
        "sampler" => {
            let mut sampler = Texture { used: Use::Sampler, ..Texture::default() };
            rest.split(',').try_for_each(|item| set_item(&mut sampler, item)).map_err(wrong)?;
            Ok(CommandArg { header: BYTES, ..buffer(sampler.header().to_vec(), None) })
        }
        "tensormap" => Ok(CommandArg { value: parse_tensor_map(rest).map_err(wrong)?, write_to: None, header: 0 }),
        "struct" => Ok(CommandArg { value: parse_struct(rest).map_err(wrong)?, write_to: None, header: 0 }),
        _ => {
            let ty = ElementType::from_name(kind)
                .ok_or_else(|| wrong(format!("`{kind}` is not a kind of argument; expected {FORMS}")))?;
            let mut bytes = Vec::new();
            ty.put(ty.parse(rest).map_err(wrong)?, &mut bytes);
            Ok(CommandArg { value: ArgValue::Scalar { bytes }, write_to: None, header: 0 })
        }
    }
}

/// Parses `ARG:OFFSET`.
fn parse_address(text: &str) -> Result<(usize, u64), String> {
    let parsed =
        text.split_once(':').and_then(|(arg, offset)| Some((arg.parse().ok()?, ElementType::U64.parse(offset).ok()?)));
    parsed.ok_or_else(|| format!("`{text}` is not ARG:OFFSET"))
}

/// Parses the items of a tensor map.
fn parse_tensor_map(text: &str) -> Result<ArgValue, String> {
    let mut items = text.split(',');
    let (arg, offset) = parse_address(items.next().unwrap_or_default())?;
    let name = items.next().unwrap_or_default();
    let ty = MAP_TYPES.iter().find(|ty| ty.name == name);
    let ty = ty.ok_or_else(|| format!("`{name}` is not a type of elements of a tensor"))?;
    let mut map = [0; tensor_map::BYTES];
    tensor_map::set(&mut map, "elemtype", 0, ty.code.into());
    tensor_map::set(&mut map, "rounding", 0, ty.rounding.into());
    let (mut rank, mut corners) = (0, Vec::new());
    for item in items {
        let (key, rest) = item.split_once('=').unwrap_or((item, ""));
        let numbers = || rest.split('x').map(|n| ElementType::U64.parse(n)).collect::<Result<Vec<u64>, _>>();
        let field = match (key, rest) {
            ("fill", "nan") => {
                tensor_map::set(&mut map, "fill_mode", 0, 1);
                continue;
            }
            ("swizzle", "32" | "64" | "128") => {
                tensor_map::set(&mut map, "swizzle_mode", 0, u64::from(numbers()?[0].trailing_zeros() - 4));
                continue;
            }
            ("sizes", _) => "global_dim",
            ("strides", _) => "global_stride",
            ("box", _) => "box_dim",
            ("steps", _) => "element_stride",
            ("pixels", _) => {
                tensor_map::set(&mut map, "images", 0, 1);
                "pixels_per_column"
            }
            ("lower" | "upper", _) => {
                for (i, corner) in rest.split('x').take(3).enumerate() {
                    let corner: i16 = corner.parse().map_err(|_| format!("`{item}` is not a corner"))?;
                    corners.push((format!("pixel_box_{key}"), i, i64::from(corner) as u64));
                }
                continue;
            }
            _ => {
                return Err(format!(
                    "`{item}` is not sizes=, strides=, box=, steps=, swizzle=, fill=nan, pixels=, lower= or upper="
                ));
            }
        };
        let numbers = numbers().map_err(|_| format!("`{rest}` is not a list of numbers with x between them"))?;
        if numbers.is_empty() || numbers.len() > tensor_map::MOST || numbers.contains(&0) {
            return Err(format!("`{item}` is not one to five numbers above 0"));
        }
        rank = if key == "sizes" { numbers.len() } else { rank };
        for (i, number) in numbers.into_iter().enumerate() {
            tensor_map::set(&mut map, field, i, number);
        }
    }
    if rank == 0 {
        return Err("a tensor needs sizes=".into());
    }
    tensor_map::set(&mut map, "rank", 0, rank as u64 - 1);
    corners.iter().for_each(|(name, i, corner)| tensor_map::set(&mut map, name, *i, *corner));
    tensor_map::complete(&mut map);
    Ok(ArgValue::Struct { bytes: map.to_vec(), addresses: vec![Within { at: 0, arg, offset }] })
}

/// Parses the items of a texture behind its path; the result is its header and its texels.
fn parse_texture(text: &str, used: Use, texels: Vec<u8>) -> Result<Vec<u8>, String> {
    let mut items = text.split(',').skip(1);
    let (name, channels) = items.next().map_or(("", "1"), |ty| ty.split_once('x').unwrap_or((ty, "1")));
    let kind = KINDS.iter().find(|(_, other)| *other == name).map(|(kind, _)| *kind);
    let kind = kind.ok_or_else(|| format!("`{name}` is not a type of components of a texture"))?;
    let channels = channels.parse().ok().filter(|n| [1, 2, 4].contains(n));
    let shape = items.next().unwrap_or_default();
    let (dimensions, cube) = match shape.trim_start_matches('a') {
        "1d" => (1, false),
        "2d" => (2, false),
        "3d" => (3, false),
        "cube" => (3, true),
        _ => return Err(format!("`{shape}` is not a shape of a texture")),
    };
    let mut texture = Texture {
        kind,
        channels: channels.ok_or("a texel has 1, 2 or 4 components")?,
        shape: Shape { dimensions, cube, layered: shape.starts_with('a') },
        layers: u32::from(shape.starts_with('a')),
        normalized: cube,
        used,
        ..Texture::default()
    };
    items.try_for_each(|item| set_item(&mut texture, item))?;
    if texture.bytes() != texels.len() as u64 {
        return Err(format!("the texture has {} bytes, and the file has {}", texture.bytes(), texels.len()));
    }
    Ok([texture.header().as_slice(), &texels].concat())
}

/// Parses `NAME:REST`: what a reference names, with REST as in `KIND:REST`.
///
/// # Errors
///
/// A sentence that says what is wrong.
pub fn parse_reference(kind: &str, text: &str) -> Result<CommandArg, String> {
    let (name, rest) = text.split_once(':').ok_or_else(|| format!("`{text}` is not NAME:…"))?;
    let mut arg = parse_command_arg(&format!("memory:{kind}:{rest}"))?;
    if let Some(bytes) = arg.value.buffer_mut() {
        bind(bytes, name)?;
    }
    Ok(arg)
}

/// Sets what an item says of a texture or a sampler.
fn set_item(texture: &mut Texture, item: &str) -> Result<(), String> {
    let (key, rest) = item.split_once('=').unwrap_or((item, ""));
    let number = || rest.parse().ok().filter(|n| *n != 0).ok_or_else(|| format!("`{rest}` is not a number above 0"));
    match key {
        "sizes" => {
            let sizes: Vec<u32> = rest.split('x').filter_map(|n| n.parse().ok()).filter(|n| *n != 0).collect();
            if sizes.len() != usize::from(if texture.shape.cube { 2 } else { texture.shape.dimensions }) {
                return Err(format!("`{rest}` is not one number above 0 for each dimension, with x between them"));
            }
            texture.size.iter_mut().zip(sizes).for_each(|(to, n)| *to = n);
        }
        "layers" => texture.layers = number()?,
        "samples" => texture.samples = number()?,
        "levels" => texture.levels = number()?,
        "address" => {
            let mode = MODES.iter().find(|(_, name)| *name == rest);
            texture.modes = [mode.ok_or_else(|| format!("`{rest}` is not wrap, mirror, clamp or border"))?.0; 3];
        }
        "linear" => texture.linear = true,
        "mip" => texture.levels_linear = true,
        "normalized" => texture.normalized = true,
        "float" => texture.as_float = true,
        _ => return Err(format!("`{item}` is nothing that a texture has")),
    }
    Ok(())
}

/// Parses the items of a structure.
fn parse_struct(text: &str) -> Result<ArgValue, String> {
    let (mut bytes, mut addresses) = (Vec::new(), Vec::new());
    for item in text.split(',') {
        let (kind, rest) = item.split_once(':').unwrap_or((item, ""));
        match kind {
            "at" => {
                let (arg, offset) = parse_address(rest)?;
                addresses.push(Within { at: bytes.len(), arg, offset });
                bytes.extend([0; size_of::<u64>()]);
            }
            "pad" => {
                let size = rest.parse().ok().filter(|size| *size <= MOST_PADDING);
                let size: usize =
                    size.ok_or_else(|| format!("`{rest}` is not a number of bytes up to {MOST_PADDING}"))?;
                bytes.resize(bytes.len() + size, 0);
            }
            _ => {
                let ty = ElementType::from_name(kind);
                let ty = ty.ok_or_else(|| format!("`{item}` is not TYPE:NUMBER, pad:BYTES or at:ARG:OFFSET"))?;
                ty.put(ty.parse(rest)?, &mut bytes);
            }
        }
    }
    Ok(ArgValue::Struct { bytes, addresses })
}

/// Largest padding in a structure in bytes; parameters are smaller.
const MOST_PADDING: usize = 1 << 15;

/// Largest buffer that `out` creates, in bytes, so that a mistyped size gives a message instead of
/// exhausting memory.
const LARGEST: u64 = 1 << 32;

fn parse_size(text: &str) -> Result<usize, String> {
    let size = ElementType::U64.parse(text).map_err(|_| format!("`{text}` is not a number of bytes"))?;
    if size > LARGEST {
        return Err(format!("{size} bytes are more than the largest buffer, {LARGEST}"));
    }
    usize::try_from(size).map_err(|_| format!("{size} bytes are more than this machine can address"))
}

fn read(path: &str) -> Result<Vec<u8>, String> {
    if path.is_empty() {
        return Err("the path is empty".into());
    }
    fs::read(path).map_err(|error| format!("cannot read `{path}`: {error}"))
}

/// Writes the buffers to their files after the run; `after` has the order of `args`.
///
/// # Errors
///
/// A file that cannot be written.
pub fn write_results(args: &[CommandArg], after: &[ArgValue]) -> Result<(), String> {
    for (arg, value) in args.iter().zip(after) {
        if let (Some(path), Some((bytes, _))) = (&arg.write_to, value.buffer()) {
            write(path, &bytes[arg.header..])?;
        }
    }
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    fs::write(path, bytes).map_err(|error| format!("cannot write `{}`: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scalar(text: &str) -> Vec<u8> {
        match parse_command_arg(text).unwrap().value {
            ArgValue::Scalar { bytes } => bytes,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn scalars() {
        assert_eq!(scalar("u32:5"), [5, 0, 0, 0]);
        assert_eq!(scalar("s32:-1"), [255; 4]);
        assert_eq!(scalar("u64:0x0102030405060708"), [8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(scalar("f32:2.5"), 2.5f32.to_le_bytes());
        assert_eq!(scalar("f64:-1e300"), (-1e300f64).to_le_bytes());
        assert_eq!(scalar("u8:7"), [7]);
    }

    #[test]
    fn buffers() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
        fs::write(path("x"), [1, 2, 3]).unwrap();
        let bytes = vec![1, 2, 3];

        let input = parse_command_arg(&format!("in:{}", path("x"))).unwrap();
        let value = ArgValue::Buffer { bytes: bytes.clone(), writable: false };
        assert_eq!(input, CommandArg { value, write_to: None, header: 0 });

        let both = parse_command_arg(&format!("inout:{}", path("x"))).unwrap();
        let value = ArgValue::Buffer { bytes, writable: true };
        assert_eq!(both, CommandArg { value: value.clone(), write_to: Some(path("x").into()), header: 0 });

        let apart = parse_command_arg(&format!("inout:{}:{}", path("x"), path("y"))).unwrap();
        assert_eq!(apart, CommandArg { value, write_to: Some(path("y").into()), header: 0 });

        let out = parse_command_arg(&format!("out:{}:0x4", path("z"))).unwrap();
        let value = ArgValue::Buffer { bytes: vec![0; 4], writable: true };
        assert_eq!(out, CommandArg { value, write_to: Some(path("z").into()), header: 0 });

        let after = [
            ArgValue::Buffer { bytes: vec![9], writable: false },
            ArgValue::Buffer { bytes: vec![4, 5, 6], writable: true },
            ArgValue::Buffer { bytes: vec![7; 4], writable: true },
        ];
        write_results(&[input, apart, out], &after).unwrap();
        assert_eq!(fs::read(path("x")).unwrap(), [1, 2, 3]);
        assert_eq!(fs::read(path("y")).unwrap(), [4, 5, 6]);
        assert_eq!(fs::read(path("z")).unwrap(), [7; 4]);
    }

    #[test]
    fn structures() {
        let value = |text: &str| parse_command_arg(text).map(|arg| arg.value);
        let bytes = [vec![5, 0, 0, 0], vec![0; 12], 2.5f32.to_le_bytes().to_vec()].concat();
        let addresses = vec![Within { at: 8, arg: 0, offset: 16 }];
        assert_eq!(value("struct:u32:5,pad:4,at:0:16,f32:2.5"), Ok(ArgValue::Struct { bytes, addresses }));
        assert_eq!(value("at:1:0x10"), Ok(ArgValue::Within { arg: 1, offset: 16 }));
        let Ok(ArgValue::Struct { bytes, addresses }) =
            value("tensormap:0:64,f32,sizes=20x10,strides=80,box=8x4,swizzle=32,fill=nan")
        else {
            panic!("no map")
        };
        assert_eq!((addresses, bytes.len()), (vec![Within { at: 0, arg: 0, offset: 64 }], 128));
        assert_eq!(
            (bytes[8], bytes[9], bytes[12], bytes[32], bytes[36], bytes[55], bytes[56]),
            (0x90, 0xa3, 5, 19, 9, 7, 3)
        );
        assert!(value("tensormap:0:0,f32,strides=16").is_err() && value("tensormap:0:0,x,sizes=4").is_err());
        let texture = "f32x2,a2d,sizes=4x2,layers=3,levels=2,address=wrap,linear,normalized";
        let made = parse_texture(&format!("x,{texture}"), Use::Texture, vec![7; 240]).unwrap();
        let header: &[u8; BYTES] = made[..BYTES].try_into().unwrap();
        let read = Texture::read(0, header).unwrap();
        assert_eq!((read.size, read.layers, read.channels, made.len()), ([4, 2, 1], 3, 2, 304));
        assert!(
            parse_texture("x,f32,2d,sizes=4", Use::Texture, vec![]).is_err()
                && parse_texture("x,f99,1d", Use::Texture, vec![]).is_err()
        );
        assert!(parse_texture("x,u8,1d,sizes=4", Use::Texture, vec![0; 5]).unwrap_err().contains("has 4 bytes"));
        assert_eq!(value("memory:out:x:4"), Ok(ArgValue::Memory { bytes: vec![0; 4], writable: true }));
        let message = |text: &str| parse_command_arg(text).unwrap_err();
        assert_eq!(message("at:x:0"), "argument `at:x:0`: `x:0` is not ARG:OFFSET");
        assert_eq!(message("struct:pad:-1"), "argument `struct:pad:-1`: `-1` is not a number of bytes up to 32768");
        let wanted = "is not TYPE:NUMBER, pad:BYTES or at:ARG:OFFSET";
        assert_eq!(message("struct:x"), format!("argument `struct:x`: `x` {wanted}"));
        assert!(message("memory:u32:5").ends_with("expected memory:in:…, memory:out:… or memory:inout:…"));
    }

    #[test]
    fn mistakes() {
        let cases = [
            ("5", format!("argument `5`: expected {FORMS}")),
            ("i32:5", format!("argument `i32:5`: `i32` is not a kind of argument; expected {FORMS}")),
            ("u32:-5", "argument `u32:-5`: `-5` does not fit into u32".into()),
            ("f32:two", "argument `f32:two`: `two` is not a number of type f32".into()),
            ("in:", "argument `in:`: the path is empty".into()),
            ("out:x.bin", "argument `out:x.bin`: expected out:PATH:BYTES, the size is missing".into()),
            ("out::4", "argument `out::4`: the path is empty".into()),
            ("out:x.bin:4k", "argument `out:x.bin:4k`: `4k` is not a number of bytes".into()),
            (
                "out:x.bin:99999999999",
                "argument `out:x.bin:99999999999`: 99999999999 bytes are more than the largest buffer, 4294967296"
                    .into(),
            ),
            ("inout:x.bin:", "argument `inout:x.bin:`: the path to write to is empty".into()),
        ];
        for (text, message) in cases {
            assert_eq!(parse_command_arg(text), Err(message));
        }
        let missing = parse_command_arg("in:/no/such/file").unwrap_err();
        assert!(missing.starts_with("argument `in:/no/such/file`: cannot read `/no/such/file`: "), "{missing}");
    }
}
