//! Executes TEX, TLD, TLD4, TXD and TXQ, and SULD, SUST and SURED.
//!
//! The operands of a read are one list, of which a has the first part and b the rest: the layer and
//! the coordinates, then the handle if it is in a register, the level, the offsets, the number of a
//! sample and the value to compare with.

use super::super::fault::Fault;
use super::super::memory::{Global, load, store};
use super::super::ops::format::{F16, F32, Round};
use super::super::ops::texture::{Level, Outside, Read, Shape, Spot, Texture};
use super::atomic;
use super::block::Block;
use super::code::{AtomicOp, AtomicType, Code, Dst, From};
use super::exec::Machine;
use super::warp::{LANES, SQUARE, Warp, lanes_of};
use crate::arrays::Each;

/// The opcode of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By floats.
    Sample,
    /// By numbers of texels.
    Exact,
    /// Four texels, of which a component.
    Gather(u8),
    /// With derivatives.
    Gradients,
}

/// A read of a texture.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub way: Way,
    pub shape: Shape,
    /// Words in a and b.
    pub words: [u8; 2],
    /// Whether the handle, a level and offsets are among them.
    pub handle: bool,
    pub level: bool,
    pub offsets: bool,
    /// Whether the number of a sample and a value to compare with follow.
    pub sample: bool,
    pub compare: bool,
    /// Whether results are halves, two in a register.
    pub halves: bool,
    /// Whether its derivatives are differences of the coordinates in a square of lanes.
    pub squares: bool,
    /// The components that are given back, and the second result.
    pub mask: u8,
    pub high: Dst,
}

/// A query of the sizes of a texture.
#[derive(Clone, Copy, Debug)]
pub struct Query {
    /// Whether the handle is in a register, before the level.
    pub handle: bool,
    /// The sizes that are given back, and the second result.
    pub mask: u8,
    pub high: Dst,
}

/// An access to a surface.
#[derive(Clone, Copy, Debug)]
pub struct Surface {
    pub shape: Shape,
    pub outside: Outside,
    /// Bytes; of components that are packed, all.
    pub bytes: u8,
    pub act: On,
}

/// What becomes of the bytes there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    Load,
    Store,
    Pack,
    Reduce(AtomicOp, AtomicType),
    /// In the format of the surface.
    ReduceElement(AtomicOp),
}

impl Surface {
    /// Words of the coordinates.
    pub fn coordinates(&self) -> u8 {
        self.shape.dimensions + u8::from(self.shape.layered)
    }
}

fn vector(w: &Warp, from: From, lane: usize, count: u8) -> Vec<u32> {
    let word = |i: u8| match from {
        From::Reg(first) if first != 255 => w.reg(usize::from(first) + usize::from(i), lane),
        _ => 0,
    };
    (0..count).map(word).collect()
}

/// The texture of a handle: a word, or a pair with a sampler in the upper one.
fn texture(m: &mut Machine, handle: u64) -> Result<Texture, Fault> {
    m.global.texture(handle as u32, Some((handle >> 32) as u32).filter(|sampler| *sampler != 0))
}

/// Executes a query for the active lanes.
///
/// # Errors
///
/// What is no texture.
pub fn query(m: &mut Machine, block: &mut Block, warp: usize, code: &Code, active: u32, q: Query) -> Result<(), Fault> {
    for lane in lanes_of(active) {
        let w = &block.warps[warp];
        let words = vector(w, code.a.from, lane, 1 + u8::from(q.handle));
        let handle = if q.handle { words[0].into() } else { w.get(&code.ub, lane) };
        let level = words[usize::from(q.handle)];
        let sizes = texture(m, handle & u64::from(u32::MAX)).map_err(|fault| fault.on_lane(lane))?.sizes(level);
        let taken = sizes.into_iter().enumerate().filter(|(i, _)| q.mask >> i & 1 == 1);
        let w = &mut block.warps[warp];
        for (n, (_, value)) in taken.enumerate() {
            w.set(if n < 2 { code.d } else { q.high }, n % 2, lane, value);
        }
    }
    Ok(())
}

/// Executes a read for the active lanes.
///
/// # Errors
///
/// What is no texture, or not of this shape.
pub fn sample(
    m: &mut Machine,
    block: &mut Block,
    warp: usize,
    code: &Code,
    active: u32,
    s: Sample,
) -> Result<(), Fault> {
    let w = &block.warps[warp];
    let reads: Vec<(u64, Read)> = (0..LANES).map(|lane| s.of_lane(w, code, lane)).collect();
    for lane in lanes_of(active) {
        let (handle, mut read) = reads[lane];
        if s.squares {
            read.level = differences(&reads, active, lane, s.shape.cube)?;
        }
        let values = texture(m, handle).and_then(|texture| {
            let mut load = |at, bytes| m.global.slice(at, bytes, false).map(|bytes| load(bytes));
            texture.sample(&read, &mut load)
        });
        let values = values.map_err(|fault| fault.on_lane(lane))?;
        let taken = values.into_iter().enumerate().filter(|(i, _)| s.mask >> i & 1 == 1).map(|(_, value)| value);
        let taken: Vec<u32> = taken.collect();
        let w = &mut block.warps[warp];
        for (dst, results) in [code.d, s.high].into_iter().zip(taken.chunks(2)) {
            if s.halves {
                let [low, high] = [0, 1].each(|i| results.get(i).map_or(0, |bits| half(*bits)));
                w.set(dst, 0, lane, low | high << 16);
            } else {
                results.iter().enumerate().for_each(|(i, value)| w.set(dst, i, lane, *value));
            }
        }
        // All texels are there.
        w.set_pred(code.pu, 1 << lane, 0);
    }
    Ok(())
}

/// The derivatives by x and by y: what the second and the third lane of a square have more than the
/// first one. Directions of a cube are compared where they meet the first one's face.
///
/// # Errors
///
/// A square of which one of these does not read.
fn differences(reads: &[(u64, Read)], active: u32, lane: usize, cube: bool) -> Result<Level, Fault> {
    let first = lane / SQUARE * SQUARE;
    if active >> first & 7 != 7 {
        return Err(Fault::new("a read with the derivatives of a square, some lanes of which are elsewhere"));
    }
    let at = |lane: usize| reads[lane].1.at.each(f32::from_bits);
    let from = at(first);
    let axis = (0..3).fold(0, |most, i| if from[i].abs() > from[most].abs() { i } else { most });
    Ok(Level::Gradients([1, 2].each(|other| {
        let to = at(first + other);
        let scale = if cube && from[axis] * to[axis] > 0.0 { from[axis] / to[axis] } else { 1.0 };
        std::array::from_fn(|i| to[i] * scale - from[i])
    })))
}

impl Sample {
    /// The handle and the read of a lane.
    fn of_lane(&self, w: &Warp, code: &Code, lane: usize) -> (u64, Read) {
        let mut words = vector(w, code.a.from, lane, self.words[0]);
        words.extend(vector(w, code.b.from, lane, self.words[1]));
        self.arrange(&words, w.get(&code.ub, lane))
    }

    /// The handle and the read of a list of operands.
    fn arrange(&self, words: &[u32], handle: u64) -> (u64, Read) {
        let mut words = words.iter().copied();
        let mut take = || words.next().unwrap_or(0);
        let (mut handle, gradients) = (handle, self.way == Way::Gradients);
        let (mut layer, mut at, mut offsets, mut by) = (0, [0; 3], 0, [[0.0; 3]; 2]);
        let dimensions = usize::from(self.shape.dimensions);
        if gradients && self.handle {
            handle = take().into();
        }
        if self.shape.layered && !gradients {
            layer = take();
        }
        at[..dimensions].iter_mut().for_each(|to| *to = take());
        if gradients {
            if self.shape.layered || self.offsets {
                let both = take();
                (layer, offsets) = (both & 0xffff, both >> 16);
            }
            for i in 0..dimensions {
                by.iter_mut().for_each(|by| by[i] = f32::from_bits(take()));
            }
        } else if self.handle {
            handle = take().into();
        }
        let level = match self.way {
            Way::Gradients => Level::Gradients(by),
            _ if !self.level => Level::First,
            Way::Exact => Level::Exact(take() as i32),
            _ => Level::Number(f32::from_bits(take())),
        };
        if self.offsets && !gradients {
            offsets = take();
        }
        let sample = self.sample.then(&mut take);
        let compare = self.compare.then(|| f32::from_bits(take()));
        let (step, bits) = if matches!(self.way, Way::Gather(_)) { (8, 6) } else { (4, 4) };
        let offset = |i: u32| ((offsets >> (i * step)) << (32 - bits)) as i32 >> (32 - bits);
        let gather = if let Way::Gather(component) = self.way { Some(component) } else { None };
        let integer = self.way == Way::Exact;
        let offsets = [0, 1, 2].each(offset);
        (handle, Read { shape: self.shape, integer, at, layer, level, offsets, gather, sample, compare })
    }
}

/// The bits of a float as those of a half.
pub fn half(bits: u32) -> u32 {
    F32.convert(bits.into(), F16, Round::Nearest) as u32
}

/// The type of the elements of a surface, in a reduction of so many bytes.
fn element(texture: &Texture, bytes: u8) -> Result<AtomicType, String> {
    match texture.element() {
        (size, _) if size != u64::from(bytes) => {
            Err(format!("a reduction of {bytes} bytes in a surface with elements of {size}"))
        }
        (_, true) => Ok(AtomicType::Signed(bytes)),
        _ => Ok(AtomicType::Unsigned(bytes)),
    }
}

/// Executes an access to a surface for the active lanes.
///
/// # Errors
///
/// What is no surface, or not of this shape, and an access outside that traps.
pub fn surface(
    m: &mut Machine,
    block: &mut Block,
    warp: usize,
    code: &Code,
    active: u32,
    s: Surface,
) -> Result<(), Fault> {
    for lane in lanes_of(active) {
        let w = &mut block.warps[warp];
        let words = vector(w, code.a.from, lane, s.coordinates());
        let mut at = [0; 3];
        let dimensions = usize::from(s.shape.dimensions);
        at[..dimensions].iter_mut().zip(&words).for_each(|(to, word)| *to = *word as i32);
        let layer = words.get(dimensions).map_or(0, |word| *word as i32);
        let handle = w.get(&code.ub, lane) & u64::from(u32::MAX);
        let value = vector(w, code.b.from, lane, (s.bytes / 4).max(1));
        let texture = texture(m, handle).map_err(|fault| fault.on_lane(lane))?;
        let spot = Spot { shape: s.shape, at, layer, bytes: None, outside: s.outside };
        let words = access(m.global, &texture, spot, (s.act, s.bytes), &value).map_err(|fault| fault.on_lane(lane))?;
        words.into_iter().enumerate().for_each(|(i, word)| w.set(code.d, i, lane, word));
    }
    Ok(())
}

/// Executes an access of so many bytes; returns the words that it reads.
///
/// # Errors
///
/// A surface that is not of this shape, and an access outside that traps.
pub fn access(
    global: &mut Global,
    texture: &Texture,
    spot: Spot,
    (act, bytes): (On, u8),
    value: &[u32],
) -> Result<Vec<u32>, Fault> {
    let counts = !matches!(act, On::Pack | On::ReduceElement(_));
    let spot = Spot { bytes: counts.then_some(bytes.into()), ..spot };
    let Some(first) = texture.spot(&spot).map_err(Fault::new)? else {
        return Ok(if act == On::Load { vec![0; usize::from(bytes / 4).max(1)] } else { Vec::new() });
    };
    let packed = match act {
        On::Pack => texture.packed(std::array::from_fn(|i| value.get(i).copied().unwrap_or(0))),
        _ => value.iter().flat_map(|word| word.to_le_bytes()).take(bytes.into()).collect(),
    };
    let act = match act {
        On::ReduceElement(op) => On::Reduce(op, element(texture, bytes).map_err(Fault::new)?),
        act => act,
    };
    let length = if act == On::Load { bytes.into() } else { packed.len() as u64 };
    let there = global.slice(first, length, act != On::Load)?;
    match act {
        On::Load => return Ok(there.chunks(4).map(|bytes| load(bytes) as u32).collect()),
        On::Store | On::Pack => there.copy_from_slice(&packed),
        On::Reduce(op, ty) => store(there, atomic::apply(op, ty, load(there), load(&packed), 0)),
        On::ReduceElement(_) => {}
    }
    Ok(Vec::new())
}
