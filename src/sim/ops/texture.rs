//! Textures and surfaces as the interpreter and the simulator know them.
//!
//! A texture lies in a buffer: a header of 64 bytes, then its texels without gaps, level after
//! level, in each level slice after slice (a layer, or a face of one), the samples of a texel side
//! by side. The low 20 bits of a handle are the number of a texture in the launch, counted from 1;
//! the 12 above them are that of a sampler, a texture without texels whose filter and address modes
//! take the place of the texture's own; the high word tells the kind. Weights of a filter have 8
//! bits behind the point, rounded to nearest, and sums are exact and rounded once, which is finer
//! than what the manual promises. A comparison gives 1 to all components where the value is at most
//! the first component of the texel, else 0, and then filters. All texels are resident. Source: the
//! CUDA C++ Programming Guide, on fetching of textures; the order of a comparison is a choice, as
//! the driver makes it.

use super::format::{F16, F32, Round};
use crate::arrays::Each;

/// Bytes of the header.
pub const BYTES: usize = 64;
/// Where a header has the name of a reference.
const NAME: usize = 36;
/// The first word of a header.
const MAGIC: u32 = 0x5845_5453;
/// Parts of a weight.
const WEIGHT: f64 = 256.0;
/// The number of a texture in its handle, and where that of a sampler is.
pub const INDEX: u32 = 0xf_ffff;
pub const SAMPLER: u32 = 20;
/// Bytes of the driver's description of a texture, sampler or surface.
pub const DESCRIPTION: usize = 64;
/// Faces of a cube.
const FACES: u32 = 6;

/// The type of a component in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    U8,
    S8,
    U16,
    S16,
    U32,
    S32,
    F16,
    F32,
}

/// All kinds by number, with their names.
pub const KINDS: [(Kind, &str); 8] = [
    (Kind::U8, "u8"),
    (Kind::S8, "s8"),
    (Kind::U16, "u16"),
    (Kind::S16, "s16"),
    (Kind::U32, "u32"),
    (Kind::S32, "s32"),
    (Kind::F16, "f16"),
    (Kind::F32, "f32"),
];

impl Kind {
    /// Bytes of a component.
    pub fn bytes(self) -> u64 {
        match self {
            Kind::U8 | Kind::S8 => 1,
            Kind::U16 | Kind::S16 | Kind::F16 => 2,
            _ => 4,
        }
    }
}

/// What a coordinate outside of a texture means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Wrap,
    Mirror,
    Clamp,
    Border,
}

/// All modes by number, with their names.
pub const MODES: [(Mode, &str); 4] =
    [(Mode::Wrap, "wrap"), (Mode::Mirror, "mirror"), (Mode::Clamp, "clamp"), (Mode::Border, "border")];

/// What a handle is of; a texture may be read as a surface too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Use {
    #[default]
    Texture,
    Surface,
    Sampler,
}

impl Use {
    /// The bit of the kind in a handle.
    pub fn bit(self) -> u64 {
        match self {
            Use::Texture => 1 << 61,
            Use::Surface => 1 << 63,
            Use::Sampler => 1 << 62,
        }
    }
}

/// Dimensions, and whether it is a cube or has layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Coordinates; three of a cube.
    pub dimensions: u8,
    pub cube: bool,
    pub layered: bool,
}

/// A texture: its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Texture {
    /// Address of the first texel.
    pub base: u64,
    pub kind: Kind,
    /// Components of a texel.
    pub channels: u32,
    pub shape: Shape,
    /// Width, height and depth.
    pub size: [u32; 3],
    pub layers: u32,
    pub levels: u32,
    /// Whether texels, and levels, are filtered.
    pub linear: bool,
    pub levels_linear: bool,
    /// Whether coordinates go from 0 to 1.
    pub normalized: bool,
    /// Whether integers are read as numbers up to 1.
    pub as_float: bool,
    pub modes: [Mode; 3],
    /// Samples of a texel.
    pub samples: u32,
    pub used: Use,
    /// The sample that a read takes, and the bits of the number that it compares texels with.
    pub(crate) sample: u32,
    pub(crate) compare: Option<u32>,
}

impl Default for Texture {
    fn default() -> Texture {
        Texture {
            base: 0,
            kind: Kind::U8,
            channels: 1,
            shape: Shape { dimensions: 2, cube: false, layered: false },
            size: [1; 3],
            layers: 0,
            levels: 1,
            linear: false,
            levels_linear: false,
            normalized: false,
            as_float: false,
            modes: [Mode::Clamp; 3],
            samples: 1,
            used: Use::Texture,
            sample: 0,
            compare: None,
        }
    }
}

/// The level that a read asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Level {
    First,
    Number(f32),
    Exact(i32),
    /// Derivatives by x and by y.
    Gradients([[f32; 3]; 2]),
}

/// A read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Read {
    pub shape: Shape,
    /// Whether the coordinates are numbers of texels.
    pub integer: bool,
    /// Bits of the coordinates.
    pub at: [u32; 3],
    pub layer: u32,
    pub level: Level,
    pub offsets: [i32; 3],
    /// The component of four texels, if those are asked for.
    pub gather: Option<u8>,
    /// The number of a sample, and what texels are compared with.
    pub sample: Option<u32>,
    pub compare: Option<f32>,
}

/// Reads so many bytes at an address.
pub type Load<'l, E> = &'l mut dyn FnMut(u64, u64) -> Result<u64, E>;

/// Whether bytes begin with a header.
pub fn is_texture(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC.to_le_bytes())
}

/// What bytes that begin with a header are used as.
pub fn used(bytes: &[u8]) -> Option<Use> {
    let header: &[u8; BYTES] = bytes.get(..BYTES)?.try_into().ok()?;
    Texture::read(0, header).ok().map(|texture| texture.used)
}

/// The name of the reference that a texture is bound to, which stands at the end of its header.
pub fn reference(bytes: &[u8]) -> Option<String> {
    used(bytes)?;
    let name = bytes.get(NAME..BYTES)?.iter().copied().take_while(|byte| *byte != 0);
    String::from_utf8(name.collect()).ok().filter(|name| !name.is_empty())
}

/// Binds a texture to a reference.
///
/// # Errors
///
/// A name too long for a header.
pub fn bind(bytes: &mut [u8], name: &str) -> Result<(), String> {
    if name.is_empty() || name.len() > BYTES - NAME {
        return Err(format!("the name `{name}` is not one of 1 to {} bytes", BYTES - NAME));
    }
    bytes[NAME..NAME + name.len()].copy_from_slice(name.as_bytes());
    Ok(())
}

impl Texture {
    /// Reads a header; `base` is its address.
    ///
    /// # Errors
    ///
    /// A sentence: what is there is no texture.
    pub fn read(base: u64, bytes: &[u8; BYTES]) -> Result<Texture, String> {
        let word = |i: usize| u32::from_le_bytes([0, 1, 2, 3].each(|k| bytes[4 * i + k]));
        let bits = |i: usize, at: u32, count: u32| word(i) >> at & ((1 << count) - 1);
        if word(0) != MAGIC {
            return Err("there is no texture at the handle".to_string());
        }
        let (dimensions, cube) = (bits(1, 16, 2) as u8, bits(1, 18, 1) == 1);
        Ok(Texture {
            base: base + BYTES as u64,
            kind: KINDS[bits(1, 0, 3) as usize].0,
            channels: bits(1, 8, 3),
            shape: Shape { dimensions, cube, layered: bits(1, 19, 1) == 1 },
            size: [word(2), word(3), word(4)],
            layers: word(5),
            levels: word(6),
            linear: bits(7, 0, 1) == 1,
            normalized: bits(7, 1, 1) == 1,
            as_float: bits(7, 2, 1) == 1,
            levels_linear: bits(7, 3, 1) == 1,
            modes: [8, 10, 12].each(|at| MODES[bits(7, at, 2) as usize].0),
            samples: word(8).max(1),
            used: [Use::Texture, Use::Surface, Use::Sampler, Use::Texture][bits(7, 16, 2) as usize],
            ..Texture::default()
        })
    }

    /// The header.
    pub fn header(&self) -> [u8; BYTES] {
        let number = |all: &[(Mode, &str); 4], mode| all.iter().position(|(m, _)| *m == mode).unwrap_or(0) as u32;
        let kind = KINDS.iter().position(|(kind, _)| *kind == self.kind).unwrap_or(0) as u32;
        let shape =
            u32::from(self.shape.dimensions) | u32::from(self.shape.cube) << 2 | u32::from(self.shape.layered) << 3;
        let flags = [self.linear, self.normalized, self.as_float, self.levels_linear];
        let mut flags = flags.iter().enumerate().fold(0, |sum, (i, flag)| sum | u32::from(*flag) << i);
        for (i, mode) in self.modes.into_iter().enumerate() {
            flags |= number(&MODES, mode) << (8 + 2 * i);
        }
        flags |= (self.used as u32) << 16;
        let [width, height, depth] = self.size;
        let first = kind | self.channels << 8 | shape << 16;
        let samples = if self.samples > 1 { self.samples } else { 0 };
        let words = [MAGIC, first, width, height, depth, self.layers, self.levels, flags, samples];
        let mut bytes = [0; BYTES];
        bytes.chunks_exact_mut(4).zip(words).for_each(|(to, word)| to.copy_from_slice(&word.to_le_bytes()));
        bytes
    }

    /// Bytes of a texel.
    fn texel(&self) -> u64 {
        self.kind.bytes() * u64::from(self.channels)
    }

    /// Slices of a level.
    fn slices(&self) -> u32 {
        self.layers.max(1) * if self.shape.cube { FACES } else { 1 }
    }

    fn size_of(&self, level: u32) -> [u32; 3] {
        self.size.each(|n| (n >> level).max(1))
    }

    /// Bytes of all texels.
    pub fn bytes(&self) -> u64 {
        (0..self.levels.max(1)).map(|level| self.level_bytes(level)).sum()
    }

    fn level_bytes(&self, level: u32) -> u64 {
        let texels: u64 = self.size_of(level).into_iter().map(u64::from).product();
        texels * u64::from(self.slices()) * u64::from(self.samples) * self.texel()
    }

    /// The address of a texel.
    fn address(&self, level: u32, slice: u32, at: [u32; 3]) -> u64 {
        let before: u64 = (0..level).map(|level| self.level_bytes(level)).sum();
        let [width, height, depth] = self.size_of(level).each(u64::from);
        let [x, y, z] = at.each(u64::from);
        let number = ((u64::from(slice) * depth + z) * height + y) * width + x;
        self.base + before + (number * u64::from(self.samples) + u64::from(self.sample)) * self.texel()
    }

    /// Whether an instruction of a shape reads this texture. A plane without rows is a line, as
    /// instructions have it that read lines.
    fn check(&self, shape: Shape) -> Result<(), String> {
        let line = self.shape.dimensions == 1 && shape.dimensions == 2 && !shape.cube;
        let same = self.shape.cube == shape.cube && (self.shape.dimensions == shape.dimensions || line);
        if same && self.shape.layered == shape.layered {
            return Ok(());
        }
        let name = |s: Shape| {
            let kind = if s.cube { "a cube".to_string() } else { format!("{} dimensions", s.dimensions) };
            kind + if s.layered { " in layers" } else { "" }
        };
        Err(format!("a read of {} of a texture of {}", name(shape), name(self.shape)))
    }

    /// Reads a texel, or filters several.
    ///
    /// # Errors
    ///
    /// A shape that the texture does not have, a filter of integers, or an error of `load`.
    pub fn sample<E: From<String>>(&self, read: &Read, load: Load<E>) -> Result<[u32; 4], E> {
        if read.sample.is_none() && self.samples > 1 {
            return Err("a read of no sample of a texture with several".to_string().into());
        }
        let sample = read.sample.unwrap_or(0).min(self.samples - 1);
        Texture { sample, compare: read.compare.map(f32::to_bits), ..*self }.sample_one(read, load)
    }

    fn sample_one<E: From<String>>(&self, read: &Read, load: Load<E>) -> Result<[u32; 4], E> {
        self.check(read.shape)?;
        let layer = read.layer.min(self.layers.max(1) - 1);
        let (mut slice, mut at, mut level) = (layer, read.at, read.level);
        if self.shape.cube {
            let direction = read.at.each(f32::from_bits);
            let (face, s, t) = face(direction);
            (slice, at) = (layer * FACES + face, [s.to_bits(), t.to_bits(), 0]);
            if let Level::Gradients(by) = read.level {
                level = Level::Gradients(by.each(|by| derivatives(direction, by)));
            }
        }
        if read.integer {
            return self.exact(read, layer, load);
        }
        let dimensions = if self.shape.cube { 2 } else { usize::from(self.shape.dimensions) };
        let last = self.levels.max(1) - 1;
        let lod = self.lod(level, dimensions).clamp(0.0, f64::from(last));
        let scaled = |level: u32| {
            let size = self.size_of(level);
            let mut to = [0.0; 3];
            for i in 0..dimensions {
                let x = f64::from(f32::from_bits(at[i]));
                let n = if self.normalized || self.shape.cube { f64::from(size[i]) } else { 1.0 };
                to[i] = x * n + f64::from(read.offsets[i]);
            }
            to
        };
        if let Some(component) = read.gather {
            let level = (lod + 0.5).floor() as u32;
            let four = self.footprint(level, slice, (scaled(level), dimensions), load)?;
            return Ok([2, 3, 1, 0].each(|i: usize| four[i].0[usize::from(component) % 4]));
        }
        if !self.levels_linear {
            let level = (lod + 0.5).floor().min(f64::from(last)) as u32;
            return self.level(level, slice, (scaled(level), dimensions), load);
        }
        let (first, share) = (lod.floor() as u32, weight(lod - lod.floor()));
        let near = self.level(first, slice, (scaled(first), dimensions), load)?;
        if share == 0.0 {
            return Ok(near);
        }
        let far = self.level(first + 1, slice, (scaled(first + 1), dimensions), load)?;
        Ok([0, 1, 2, 3].each(|i| {
            let [near, far] = [near[i], far[i]].each(|bits| f64::from(f32::from_bits(bits)));
            (((1.0 - share) * near + share * far) as f32).to_bits()
        }))
    }

    /// The level of detail.
    fn lod(&self, level: Level, dimensions: usize) -> f64 {
        match level {
            Level::First | Level::Exact(_) => 0.0,
            Level::Number(number) if number.is_nan() => 0.0,
            Level::Number(number) => number.into(),
            Level::Gradients(by) => {
                let scale = |i: usize| if self.normalized || self.shape.cube { f64::from(self.size[i]) } else { 1.0 };
                let length =
                    |d: [f32; 3]| (0..dimensions).map(|i| (f64::from(d[i]) * scale(i)).powi(2)).sum::<f64>().sqrt();
                length(by[0]).max(length(by[1])).log2()
            }
        }
    }

    /// The texel of a number; zeros outside of the texture.
    fn exact<E>(&self, read: &Read, layer: u32, load: Load<E>) -> Result<[u32; 4], E> {
        let level = if let Level::Exact(level) = read.level { level } else { 0 };
        let level = level.clamp(0, self.levels.max(1) as i32 - 1) as u32;
        let (size, mut to) = (self.size_of(level), [0; 3]);
        for i in 0..usize::from(self.shape.dimensions) {
            let x = i64::from(read.at[i] as i32) + i64::from(read.offsets[i]);
            if !(0..i64::from(size[i])).contains(&x) {
                return Ok([0; 4]);
            }
            to[i] = x as u32;
        }
        self.components(level, layer, to, load)
    }

    /// Reads one level.
    fn level<E: From<String>>(
        &self,
        level: u32,
        slice: u32,
        (at, dimensions): ([f64; 3], usize),
        load: Load<E>,
    ) -> Result<[u32; 4], E> {
        if !self.linear {
            let to = at.each(|x| x.floor() as i64);
            return self.inside(level, slice, (to, dimensions), load);
        }
        let whole = matches!(self.kind, Kind::F16 | Kind::F32) || self.as_float || self.compare.is_some();
        if !whole {
            return Err("a filter of integers that are not read as floats".to_string().into());
        }
        let all = self.footprint(level, slice, (at, dimensions), load)?;
        let sum = |i: usize| all.iter().map(|(c, share)| share * f64::from(f32::from_bits(c[i]))).sum::<f64>();
        Ok([0, 1, 2, 3].each(|i| (sum(i) as f32).to_bits()))
    }

    /// The texels around a place, the first coordinate fastest, each with its weight.
    fn footprint<E>(
        &self,
        level: u32,
        slice: u32,
        (at, dimensions): ([f64; 3], usize),
        load: Load<E>,
    ) -> Result<Vec<([u32; 4], f64)>, E> {
        let from = at.each(|x| x - 0.5);
        let share = from.each(|x| weight(x - x.floor()));
        let mut all = Vec::new();
        for corner in 0..1usize << dimensions {
            let (mut to, mut part) = ([0; 3], 1.0);
            for i in 0..dimensions {
                let far = corner >> i & 1 == 1;
                to[i] = (from[i].floor() as i64).saturating_add(far.into());
                part *= if far { share[i] } else { 1.0 - share[i] };
            }
            all.push((self.inside(level, slice, (to, dimensions), load)?, part));
        }
        Ok(all)
    }

    /// A texel of any number: what the address modes say outside of the texture.
    fn inside<E>(
        &self,
        level: u32,
        slice: u32,
        (at, dimensions): ([i64; 3], usize),
        load: Load<E>,
    ) -> Result<[u32; 4], E> {
        let (size, mut to) = (self.size_of(level), [0; 3]);
        for i in 0..dimensions {
            let (n, x) = (i64::from(size[i]), at[i]);
            let free = self.normalized && !self.shape.cube;
            to[i] = match self.modes[i] {
                Mode::Wrap if free => x.rem_euclid(n),
                Mode::Mirror if free => x.rem_euclid(2 * n).min(2 * n - 1 - x.rem_euclid(2 * n)),
                Mode::Border if !(0..n).contains(&x) => return Ok(self.compared([0; 4])),
                _ => x.clamp(0, n - 1),
            } as u32;
        }
        Ok(self.compared(self.components(level, slice, to, load)?))
    }

    /// What a comparison makes of a texel.
    fn compared(&self, texel: [u32; 4]) -> [u32; 4] {
        match self.compare {
            Some(value) => {
                let passes = f32::from_bits(value) <= f32::from_bits(texel[0]);
                [if passes { 1f32 } else { 0.0 }.to_bits(); 4]
            }
            None => texel,
        }
    }

    /// The same texture read by a sampler.
    #[must_use]
    pub fn with_sampler(&self, sampler: &Texture) -> Texture {
        let Texture { linear, levels_linear, normalized, modes, .. } = *sampler;
        Texture { linear, levels_linear, normalized: normalized || self.shape.cube, modes, ..*self }
    }

    /// Width, height and depth of a level, the last one where it has fewer.
    pub fn sizes(&self, level: u32) -> [u32; 3] {
        self.size_of(level.min(self.levels.max(1) - 1))
    }

    /// The number of a component type and that of an order of components in OpenCL, which is what
    /// queries give (PTX ISA 5.3.1).
    pub fn channel_numbers(&self) -> [u32; 2] {
        let ty = match (self.kind, self.as_float) {
            (Kind::S8, true) => 0x10d0,
            (Kind::S16, true) => 0x10d1,
            (Kind::U8, true) => 0x10d2,
            (Kind::U16, true) => 0x10d3,
            (Kind::S8, _) => 0x10d7,
            (Kind::S16, _) => 0x10d8,
            (Kind::S32, _) => 0x10d9,
            (Kind::U8, _) => 0x10da,
            (Kind::U16, _) => 0x10db,
            (Kind::U32, _) => 0x10dc,
            (Kind::F16, _) => 0x10dd,
            (Kind::F32, _) => 0x10de,
        };
        [ty, [0x10b0, 0x10b0, 0x10b2, 0x10b4, 0x10b5][self.channels.min(4) as usize]]
    }

    /// The number of an address mode, which is what queries give.
    pub fn mode_number(&self, dimension: usize) -> u32 {
        match self.modes[dimension] {
            Mode::Wrap => 0,
            Mode::Mirror => 1,
            Mode::Clamp => 3,
            Mode::Border => 4,
        }
    }

    /// The driver's description of a texture, as the offsets in ptxas's code have it; `apart` where
    /// samplers have their own.
    pub fn description(&self, apart: bool) -> [u8; DESCRIPTION] {
        let [ty, order] = self.channel_numbers();
        let mut words = [0u32; DESCRIPTION / 4];
        if self.used == Use::Surface {
            (words[3], words[4], words[7]) = (ty, order, self.layers);
        } else if apart && self.used == Use::Sampler {
            (0..3).for_each(|i| words[i] = self.mode_number(i));
            words[3] = self.linear.into();
        } else if apart {
            (words[3], words[4], words[5]) = (self.normalized.into(), ty, order);
            (words[6], words[7], words[8]) = (self.layers, self.levels, self.samples);
        } else {
            (0..3).for_each(|i| words[3 + i] = self.mode_number(i));
            (words[6], words[7], words[8], words[9]) = (self.linear.into(), self.normalized.into(), ty, order);
            (words[10], words[11], words[12]) = (self.layers, self.levels, self.samples);
        }
        let mut bytes = [0; DESCRIPTION];
        bytes.chunks_exact_mut(4).zip(words).for_each(|(to, word)| to.copy_from_slice(&word.to_le_bytes()));
        bytes
    }

    /// Bytes of a texel, and whether its components are signed: what a reduction in the format of a
    /// surface adds to or compares.
    pub fn element(&self) -> (u64, bool) {
        (self.texel(), matches!(self.kind, Kind::S8 | Kind::S16 | Kind::S32))
    }

    /// The components of a texel; those that it lacks are 0, 0 and 1.
    fn components<E>(&self, level: u32, slice: u32, at: [u32; 3], load: Load<E>) -> Result<[u32; 4], E> {
        let (address, bytes) = (self.address(level, slice, at), self.kind.bytes());
        let float = self.as_float || matches!(self.kind, Kind::F16 | Kind::F32);
        let mut all = [0, 0, 0, if float { 1f32.to_bits() } else { 1 }];
        for i in 0..self.channels.min(4) {
            let bits = load(address + u64::from(i) * bytes, bytes)? as u32;
            all[i as usize] = self.widened(bits);
        }
        Ok(all)
    }

    fn widened(&self, bits: u32) -> u32 {
        let part = |value: f64, most: f64| ((value / most).max(-1.0) as f32).to_bits();
        match (self.kind, self.as_float) {
            (Kind::U8, true) => part(bits.into(), 255.0),
            (Kind::S8, true) => part((bits as u8 as i8).into(), 127.0),
            (Kind::U16, true) => part(bits.into(), 65535.0),
            (Kind::S16, true) => part((bits as u16 as i16).into(), 32767.0),
            (Kind::S8, _) => bits as u8 as i8 as i32 as u32,
            (Kind::S16, _) => bits as u16 as i16 as i32 as u32,
            (Kind::F16, _) => F16.convert(bits.into(), F32, Round::Nearest) as u32,
            _ => bits,
        }
    }
}

/// A share in parts of 256.
fn weight(share: f64) -> f64 {
    (share * WEIGHT).round() / WEIGHT
}

/// The face of a cube that a direction meets, and where, from 0 to 1.
fn face(direction: [f32; 3]) -> (u32, f32, f32) {
    let face = met(direction);
    let [m, s, t] = on_face(face, direction);
    (face, (s / m + 1.0) / 2.0, (t / m + 1.0) / 2.0)
}

/// The number of the face that a direction meets.
fn met([x, y, z]: [f32; 3]) -> u32 {
    let [ax, ay, az] = [x, y, z].each(f32::abs);
    let (pair, along) = match () {
        () if ax >= ay && ax >= az => (0, x),
        () if ay >= az => (2, y),
        () => (4, z),
    };
    pair + u32::from(along < 0.0)
}

/// What a vector has towards a face, and along its two sides.
fn on_face(face: u32, [x, y, z]: [f32; 3]) -> [f32; 3] {
    match face {
        0 => [x, -z, -y],
        1 => [-x, z, -y],
        2 => [y, x, z],
        3 => [-y, x, -z],
        4 => [z, x, -y],
        _ => [-z, -x, -y],
    }
}

/// How the place on a face moves as the direction does: the quotient rule.
fn derivatives(direction: [f32; 3], by: [f32; 3]) -> [f32; 3] {
    let face = met(direction);
    let ([m, s, t], [dm, ds, dt]) = (on_face(face, direction), on_face(face, by));
    let moved = |at: f32, by: f32| (by * m - at * dm) / (2.0 * m * m);
    [moved(s, ds), moved(t, dt), 0.0]
}

/// What an access outside of a surface does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outside {
    Trap,
    Clamp,
    Ignore,
}

/// Where an access to a surface goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    pub shape: Shape,
    pub at: [i32; 3],
    pub layer: i32,
    /// Bytes of the access, whose first coordinate counts bytes; `None`: it counts texels.
    pub bytes: Option<u32>,
    pub outside: Outside,
}

impl Texture {
    /// The address of an access to a surface; `None` if it does nothing.
    ///
    /// # Errors
    ///
    /// A shape that the surface does not have, an access outside that traps, or a misaligned one.
    pub fn spot(&self, spot: &Spot) -> Result<Option<u64>, String> {
        self.check(spot.shape)?;
        let unit = if spot.bytes.is_some() { self.texel() as i64 } else { 1 };
        let span = i64::from(spot.bytes.unwrap_or(1));
        let mut to = [0i64; 3];
        for i in 0..=3 {
            let (x, n) = match i {
                3 => (spot.layer, i64::from(self.layers.max(1))),
                0 => (spot.at[0], i64::from(self.size[0]) * unit),
                _ => (spot.at[i], i64::from(self.size[i])),
            };
            let (x, span) = (i64::from(x), if i == 0 { span } else { 1 });
            let inside = (0..=n - span).contains(&x);
            let x = match spot.outside {
                _ if inside => x,
                Outside::Trap => return Err(format!("an access to a surface outside of it, at {x} of {n}")),
                Outside::Ignore => return Ok(None),
                Outside::Clamp => x.clamp(0, n - span),
            };
            if i == 0 && x % span != 0 {
                return Err(format!("a misaligned access to {span} bytes of a surface at {x}"));
            }
            if i < 3 { to[i] = x } else { to[2] += x * i64::from(self.size[2]) }
        }
        let row = (to[2] * i64::from(self.size[1]) + to[1]) * i64::from(self.size[0]) * self.texel() as i64;
        let along = if spot.bytes.is_some() { to[0] } else { to[0] * self.texel() as i64 };
        Ok(Some(self.base + (row + along) as u64))
    }

    /// The bytes of a texel with these components.
    pub fn packed(&self, components: [u32; 4]) -> Vec<u8> {
        let bytes = self.kind.bytes() as usize;
        let one = |bits: &u32| match self.kind {
            Kind::F16 => F32.convert((*bits).into(), F16, Round::Nearest) as u32,
            _ => *bits,
        };
        components.iter().take(self.channels as usize).flat_map(|c| one(c).to_le_bytes()[..bytes].to_vec()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plane() -> Texture {
        let shape = Shape { dimensions: 2, cube: false, layered: false };
        Texture { base: BYTES as u64, kind: Kind::F32, shape, size: [4, 2, 1], linear: true, ..Texture::default() }
    }

    fn at(texture: &Texture, x: f32, y: f32) -> f32 {
        let read = Read {
            shape: texture.shape,
            integer: false,
            at: [x.to_bits(), y.to_bits(), 0],
            layer: 0,
            level: Level::First,
            offsets: [0; 3],
            gather: None,
            sample: None,
            compare: None,
        };
        // Texel i is the number i.
        let mut load = |address: u64, _| Ok::<u64, String>(u64::from((((address - 64) / 4) as f32).to_bits()));
        f32::from_bits(texture.sample(&read, &mut load).unwrap()[0])
    }

    #[test]
    fn texels_are_filtered() {
        let mut texture = plane();
        assert_eq!(Texture::read(0, &texture.header()), Ok(texture));
        assert_eq!([at(&texture, 1.5, 0.5), at(&texture, 2.0, 0.5), at(&texture, 1.75, 1.0)], [1.0, 1.5, 3.25]);
        assert_eq!([at(&texture, -3.0, 0.5), at(&texture, 9.0, 9.0)], [0.0, 7.0]);
        texture.linear = false;
        assert_eq!([at(&texture, 1.99, 0.5), at(&texture, 2.0, 1.0)], [1.0, 6.0]);
        (texture.normalized, texture.modes) = (true, [Mode::Wrap, Mode::Mirror, Mode::Clamp]);
        assert_eq!([at(&texture, 1.3, 0.1), at(&texture, -0.1, 1.1)], [1.0, 7.0]);
        texture.modes = [Mode::Border; 3];
        assert_eq!(at(&texture, -0.1, 0.1), 0.0);
    }

    #[test]
    fn surfaces_have_edges() {
        let texture = plane();
        let spot = |x, y, outside| {
            texture.spot(&Spot { shape: texture.shape, at: [x, y, 0], layer: 0, bytes: Some(4), outside })
        };
        assert_eq!(spot(8, 1, Outside::Trap), Ok(Some(64 + 24)));
        assert_eq!(spot(16, 5, Outside::Clamp), Ok(Some(64 + 28)));
        assert_eq!(spot(-4, 0, Outside::Ignore), Ok(None));
        assert!(spot(16, 0, Outside::Trap).is_err() && spot(2, 0, Outside::Trap).is_err());
    }

    #[test]
    fn directions_meet_faces() {
        assert_eq!(face([1.0, 0.0, 0.5]), (0, 0.25, 0.5));
        assert_eq!(face([0.0, -1.0, 0.5]), (3, 0.5, 0.25));
        assert_eq!(face([0.5, 0.0, -1.0]), (5, 0.25, 0.5));
    }
}
