//! Executes reads of textures (PTX ISA 9.7.10) and accesses to surfaces (PTX ISA 9.7.11).

use super::atomic::next;
use super::operands::{Names, Refusal};
use super::program::{Act, Alu, Sink, Src};
use super::state::{Scene, Thread};
use crate::arrays::Each;
use crate::ptx::ast::{Instruction, Operand, OperandKind};
use crate::sim::fault::Fault;
use crate::sim::memory::store;
use crate::sim::ops::format::{F16, F32, Round};
use crate::sim::ops::texture::{Level, Outside, Read, Shape, Spot, Texture, Use};
use crate::tables::ptx::{AtomOp, Component, Geometry, Op, Query, Role, ScalarType, Space, SurfaceClamp};

/// A read of a texture.
#[derive(Clone, Debug)]
pub struct Sample {
    handle: Src,
    sampler: Option<Src>,
    shape: Shape,
    integer: bool,
    layer: Option<Src>,
    at: Vec<Src>,
    /// The level, or the derivatives by x and then by y.
    level: Vec<Src>,
    offsets: Vec<Src>,
    gather: Option<u8>,
    sample: Option<Src>,
    compare: Option<Src>,
    /// Whether results are halves, and whether two lie in one.
    halves: bool,
    pairs: bool,
    pub results: Vec<Sink>,
    /// Whether the texels are resident.
    pub resident: Sink,
}

/// A query of a texture, sampler or surface.
#[derive(Clone, Debug)]
pub struct Ask {
    handle: Src,
    query: Query,
    level: Option<Src>,
    pub result: Sink,
}

/// An access to a surface.
#[derive(Clone, Debug)]
pub struct Surface {
    handle: Src,
    shape: Shape,
    layer: Option<Src>,
    at: Vec<Src>,
    outside: Outside,
    ty: ScalarType,
    act: On,
}

/// What becomes of the bytes there.
#[derive(Clone, Debug)]
enum On {
    Load(Vec<Sink>),
    Store(Vec<Src>),
    /// Components in the format of the surface.
    Pack(Vec<Src>),
    Reduce(AtomOp, Src, bool),
}

/// Translates a read of a texture.
///
/// # Errors
///
/// What the interpreter does not know.
pub fn sample(names: &Names, i: &Instruction) -> Result<Act, Refusal> {
    let geometry = i.mods.geometry.ok_or("no geometry")?;
    let args = i.row.form().args;
    let floats = args.last().is_some_and(|arg| arg.role == Role::Src);
    let compares = floats && (i.op != Op::TexLevel || args.len() > 3);
    let place = place(names, i, &i.operands[1], i.types[1])?;
    let compare = i.operands.last().filter(|_| compares).map(|o| names.src(o, Some(ScalarType::F32))).transpose()?;
    let list = |operand: &Operand, ty| {
        let each = names.elements(operand).into_iter().map(|e| names.src(&e, Some(ty)));
        each.take(geometry.dimensions()).collect::<Result<Vec<_>, _>>()
    };
    let level = match i.op {
        Op::TexLevel => vec![names.src(&i.operands[2], Some(i.types[1]))?],
        Op::TexGrad => [list(&i.operands[2], ScalarType::F32)?, list(&i.operands[3], ScalarType::F32)?].concat(),
        _ => Vec::new(),
    };
    let offsets = match args.iter().position(|arg| arg.role == Role::Texels) {
        Some(at) => list(&i.operands[at], ScalarType::S32)?,
        None => Vec::new(),
    };
    let (values, resident) = match &i.operands[0].kind {
        OperandKind::Pair(pair) => (&pair.0, names.dst(&pair.1, Some(ScalarType::Pred))?),
        _ => (&i.operands[0], None),
    };
    let results = names.elements(values).into_iter().map(|e| names.dst(&e, Some(i.types[0])));
    let gather = (i.op == Op::Tld4).then_some(match i.mods.component {
        Some(Component::G) => 1,
        Some(Component::B) => 2,
        Some(Component::A) => 3,
        _ => 0,
    });
    let integer = i.types[1] != ScalarType::F32;
    let results = results.collect::<Result<_, _>>()?;
    let pairs = i.types[0] == ScalarType::F16x2;
    let Place { handle, sampler, sample, layer, at } = place;
    Ok(Act::Sample(Box::new(Sample {
        handle,
        sampler,
        shape: shape(geometry),
        integer,
        layer,
        at,
        level,
        offsets,
        gather,
        sample,
        compare,
        halves: pairs || i.types[0] == ScalarType::F16,
        pairs,
        results,
        resident,
    })))
}

/// Translates a query.
///
/// # Errors
///
/// What the interpreter does not know.
pub fn ask(names: &Names, i: &Instruction) -> Result<Act, Refusal> {
    let handle = names.address(&i.operands[1], Some(Space::Global)).map_err(|_| "a reference by name")?.base;
    let level = i.operands.get(2).map(|o| names.src(o, Some(ScalarType::U32))).transpose()?;
    let result = names.dst(&i.operands[0], Some(i.types[0]))?;
    Ok(Act::Ask(Box::new(Ask { handle, query: i.mods.query.ok_or("no query")?, level, result })))
}

/// Translates `istypep`: each kind has a bit in a handle.
///
/// # Errors
///
/// What the interpreter does not know.
pub fn is_type(names: &Names, i: &Instruction) -> Result<Act, Refusal> {
    let used = match i.types[0] {
        ScalarType::Texref => Use::Texture,
        ScalarType::Samplerref => Use::Sampler,
        _ => Use::Surface,
    };
    let f: Alu = Box::new(move |s| [u64::from(s[0] & used.bit() != 0), 0]);
    let (src, dst) =
        (names.src(&i.operands[1], Some(ScalarType::B64))?, names.dst(&i.operands[0], Some(ScalarType::Pred))?);
    Ok(Act::Compute { f, src: smallvec::smallvec![src], dst: smallvec::smallvec![dst] })
}

/// Translates an access to a surface.
///
/// # Errors
///
/// What the interpreter does not know.
pub fn surface(names: &Names, i: &Instruction) -> Result<Act, Refusal> {
    let geometry = i.mods.geometry.ok_or("no geometry")?;
    let (address, value) = if i.op == Op::SuldB { (1, 0) } else { (0, 1) };
    let Place { handle, layer, at, .. } = place(names, i, &i.operands[address], ScalarType::S32)?;
    let ty = i.types[0];
    let parts = names.elements(&i.operands[value]);
    let sources = || parts.iter().map(|e| names.src(e, Some(ty))).collect::<Result<Vec<_>, _>>();
    let act = match (i.op, i.mods.atom_op) {
        (Op::SuldB, _) => On::Load(parts.iter().map(|e| names.dst(e, Some(ty))).collect::<Result<_, _>>()?),
        (Op::SustB, _) => On::Store(sources()?),
        (Op::SustP, _) => On::Pack(sources()?),
        (_, Some(op)) => On::Reduce(op, names.src(&i.operands[value], Some(ty))?, i.op == Op::SuredP),
        _ => return Err("no operation".into()),
    };
    let outside = match i.mods.surface_clamp {
        Some(SurfaceClamp::Clamp) => Outside::Clamp,
        Some(SurfaceClamp::Zero) => Outside::Ignore,
        _ => Outside::Trap,
    };
    Ok(Act::Surface(Box::new(Surface { handle, shape: shape(geometry), layer, at, outside, ty, act })))
}

fn shape(geometry: Geometry) -> Shape {
    Shape { dimensions: geometry.dimensions() as u8, cube: geometry.is_cube(), layered: geometry.has_layers() }
}

/// Where an access goes.
struct Place {
    handle: Src,
    sampler: Option<Src>,
    sample: Option<Src>,
    layer: Option<Src>,
    at: Vec<Src>,
}

/// The handles, the sample, the layer and the coordinates.
fn place(names: &Names, i: &Instruction, operand: &Operand, ty: ScalarType) -> Result<Place, Refusal> {
    let geometry = i.mods.geometry.ok_or("no geometry")?;
    let OperandKind::Address(address) = &operand.kind else { return Err("a texture of this kind".into()) };
    let (sampler, list) = match &address.rest[..] {
        [list] => (None, list),
        [sampler, list] => (Some(names.src(sampler, Some(ScalarType::B64))?), list),
        _ => return Err("coordinates of this kind".into()),
    };
    let handle = names.address(operand, Some(Space::Global)).map_err(|_| "a reference by name")?.base;
    let mut place = Place { handle, sampler, sample: None, layer: None, at: Vec::new() };
    for (n, element) in names.elements(list).into_iter().enumerate() {
        let number = || names.src(&element, Some(ScalarType::U32));
        if n == 0 && geometry.is_multisample() {
            place.sample = Some(number()?);
        } else if n < geometry.indices() {
            place.layer = Some(number()?);
        } else if place.at.len() < geometry.dimensions() {
            place.at.push(names.src(&element, Some(ty))?);
        }
    }
    Ok(place)
}

impl Scene<'_> {
    /// The texture of a handle, read by a sampler if one is given.
    fn texture(&mut self, thread: &mut Thread, handle: &Src, sampler: Option<&Src>) -> Result<Texture, Fault> {
        [Some(handle), sampler]
            .into_iter()
            .flatten()
            .for_each(|src| self.decide(thread, "the handle of a texture", src));
        let word = self.value(thread, handle) as u32;
        let sampler = sampler.map(|sampler| self.value(thread, sampler) as u32);
        self.global.texture(word, sampler)
    }

    /// Answers a query.
    ///
    /// # Errors
    ///
    /// What is no texture.
    pub fn ask(&mut self, thread: &mut Thread, ask: &Ask) -> Result<(), Fault> {
        let texture = self.texture(thread, &ask.handle, None)?;
        let level = ask.level.map_or(0, |level| {
            self.decide(thread, "a level of a texture", &level);
            self.value(thread, &level) as u32
        });
        let [width, height, depth] = texture.sizes(level);
        let [ty, order] = texture.channel_numbers();
        let answer = match ask.query {
            Query::Width => width,
            Query::Height => height,
            Query::Depth => depth,
            Query::ChannelDataType => ty,
            Query::ChannelOrder => order,
            Query::NormalizedCoords => texture.normalized.into(),
            Query::FilterMode => texture.linear.into(),
            Query::AddrMode0 => texture.mode_number(0),
            Query::AddrMode1 => texture.mode_number(1),
            Query::AddrMode2 => texture.mode_number(2),
            Query::ArraySize => texture.layers,
            Query::NumMipmapLevels => texture.levels,
            Query::NumSamples => texture.samples,
            Query::ForceUnnormalizedCoords | Query::MemoryLayout => 0,
        };
        if let Some(dst) = ask.result {
            thread.put(dst, answer.into());
        }
        Ok(())
    }

    /// Reads a texture.
    ///
    /// # Errors
    ///
    /// What is no texture, or not of this shape.
    pub fn sample(&mut self, thread: &mut Thread, sample: &Sample) -> Result<(), Fault> {
        let texture = self.texture(thread, &sample.handle, sample.sampler.as_ref())?;
        let sources = sample.at.iter().chain(&sample.layer).chain(&sample.level).chain(&sample.offsets);
        let sources = sources.chain(&sample.sample).chain(&sample.compare);
        sources.for_each(|src| self.decide(thread, "a coordinate of a texture", src));
        let words = |list: &[Src]| {
            let mut all = [0; 3];
            all.iter_mut().zip(list).for_each(|(to, src)| *to = self.value(thread, src) as u32);
            all
        };
        let floats = |list: &[Src]| words(list).each(f32::from_bits);
        let level = match sample.level.as_slice() {
            [] => Level::First,
            [level] if sample.integer => Level::Exact(self.value(thread, level) as i32),
            [level] => Level::Number(f32::from_bits(self.value(thread, level) as u32)),
            list => {
                let (by_x, by_y) = list.split_at(list.len() / 2);
                Level::Gradients([floats(by_x), floats(by_y)])
            }
        };
        let read = Read {
            shape: sample.shape,
            integer: sample.integer,
            at: words(&sample.at),
            layer: sample.layer.map_or(0, |layer| self.value(thread, &layer) as u32),
            level,
            offsets: words(&sample.offsets).each(|word| word as i32),
            gather: sample.gather,
            sample: sample.sample.map(|number| self.value(thread, &number) as u32),
            compare: sample.compare.map(|value| f32::from_bits(self.value(thread, &value) as u32)),
        };
        let mut load = |at, bytes| self.load(thread, (Space::Global, at), bytes);
        let values = texture.sample(&read, &mut load)?;
        let half = |bits: u32| F32.convert(bits.into(), F16, Round::Nearest) as u32;
        let values: Vec<u32> = match (sample.pairs, sample.halves) {
            (true, _) => values.chunks(2).map(|pair| half(pair[0]) | half(pair[1]) << 16).collect(),
            (_, true) => values.into_iter().map(half).collect(),
            _ => values.to_vec(),
        };
        for (sink, value) in sample.results.iter().zip(values) {
            if let Some(dst) = sink {
                thread.put(*dst, value.into());
            }
        }
        if let Some(dst) = sample.resident {
            thread.put(dst, 1);
        }
        Ok(())
    }

    /// Accesses a surface.
    ///
    /// # Errors
    ///
    /// What is no surface, or not of this shape, and an access outside that traps.
    pub fn surface(&mut self, thread: &mut Thread, access: &Surface) -> Result<(), Fault> {
        let texture = self.texture(thread, &access.handle, None)?;
        let sources: Vec<Src> = access.at.iter().chain(&access.layer).copied().collect();
        sources.iter().for_each(|src| self.decide(thread, "a coordinate of a surface", src));
        let mut at = [0; 3];
        at.iter_mut().zip(&access.at).for_each(|(to, src)| *to = self.value(thread, src) as i32);
        let layer = access.layer.map_or(0, |layer| self.value(thread, &layer) as i32);
        let width = u64::from(access.ty.bits() / 8);
        let count = match &access.act {
            On::Load(sinks) => sinks.len(),
            On::Store(sources) => sources.len(),
            _ => 1,
        };
        let counts = !matches!(access.act, On::Pack(_) | On::Reduce(_, _, true));
        let bytes = counts.then_some((width * count as u64) as u32);
        let spot = Spot { shape: access.shape, at, layer, bytes, outside: access.outside };
        let place = texture.spot(&spot).map_err(Fault::new)?;
        let there = |n: usize| place.map(|first| (Space::Global, first + n as u64 * width));
        match &access.act {
            On::Load(sinks) => {
                for (n, sink) in sinks.iter().enumerate() {
                    let value = there(n).map_or(Ok(0), |at| self.load(thread, at, width))?;
                    if let Some(dst) = sink {
                        thread.put(*dst, value);
                    }
                }
            }
            On::Store(sources) => {
                for (n, src) in sources.iter().enumerate() {
                    self.decide(thread, "what is stored in a surface", src);
                    let value = self.value(thread, src);
                    self.put_in_surface(thread, there(n), width, value)?;
                }
            }
            On::Pack(sources) => {
                let mut components = [0; 4];
                for (to, src) in components.iter_mut().zip(sources) {
                    self.decide(thread, "what is stored in a surface", src);
                    *to = self.value(thread, src) as u32;
                }
                for (n, byte) in texture.packed(components).into_iter().enumerate() {
                    let at = place.map(|first| (Space::Global, first + n as u64));
                    self.put_in_surface(thread, at, 1, byte.into())?;
                }
            }
            On::Reduce(op, src, element) => {
                self.decide(thread, "what is stored in a surface", src);
                let ty = match (element, texture.element(), width) {
                    (false, ..) => access.ty,
                    (_, (size, _), _) if size != width => {
                        let what = format!("a reduction of {width} bytes in a surface with elements of {size}");
                        return Err(Fault::new(what));
                    }
                    (_, (_, true), 8) => ScalarType::S64,
                    (_, (_, true), _) => ScalarType::S32,
                    (_, _, 8) => ScalarType::U64,
                    _ => ScalarType::U32,
                };
                if let Some(at) = there(0) {
                    let (old, new) = (self.load(thread, at, width)?, self.value(thread, src));
                    let value = next(*op, ty, Space::Global, old.into(), new.into(), 0) as u64;
                    self.put_in_surface(thread, Some(at), width, value)?;
                }
            }
        }
        Ok(())
    }

    fn put_in_surface(
        &mut self,
        thread: &mut Thread,
        at: Option<(Space, u64)>,
        width: u64,
        value: u64,
    ) -> Result<(), Fault> {
        let Some(at) = at else { return Ok(()) };
        self.bytes(thread, at, width, true)?;
        self.written(thread, at, width, value, 0);
        store(self.bytes(thread, at, width, true)?, value);
        Ok(())
    }
}
