//! Executes the driver's functions for textures and surfaces, lane by lane.
//!
//! A function finds its arguments in the registers and words of the stack that its row says, and
//! leaves something else in every register that it need not keep, and in the predicates.

use super::super::fault::Fault;
use super::super::memory::{Global, load};
use super::super::ops::texture::{Level, Outside, Read, Shape, Spot, Texture};
use super::code::{AtomicOp, AtomicType};
use super::texture::{On, access, half};
use super::warp::Warp;
use crate::arrays::Each;
use crate::tables::images::{Argument, COMPONENTS, Call, Function, GATHERED, Part, Place};
use crate::tables::ptx::{Geometry, ScalarType};

/// The register of the stack pointer.
const STACK_POINTER: usize = 1;

/// A call: the function, the word, and the values of all arguments.
struct Asked<'a> {
    function: &'a Function,
    word: u32,
    args: Vec<(Argument, u32)>,
}

/// Executes a function for one lane.
///
/// # Errors
///
/// What is no texture or surface, or not of this shape; a word that says what no row knows; an
/// argument that is to be zero and is not.
pub fn call(global: &mut Global, w: &mut Warp, lane: usize, function: &Function) -> Result<(), Fault> {
    let mut args = Vec::new();
    for (argument, place) in function.args {
        args.push((*argument, argument_at(w, lane, *place)?));
    }
    let word = args.iter().find(|(argument, _)| *argument == Argument::Word).map_or(0, |(_, value)| *value);
    let asked = Asked { function, word, args };
    asked.check().map_err(Fault::new)?;
    let mut results = match function.what {
        Call::ReadLevel | Call::ReadGradients | Call::Gather => asked.read(global)?,
        Call::VolumeGradients => asked.read_volume(global)?,
        Call::Query => asked.query(global)?,
        Call::Load | Call::Store | Call::Reduce => asked.access(global)?,
    };
    let answers = [Argument::Absent, Argument::Present];
    results.truncate(function.results.iter().filter(|(result, _)| !answers.contains(result)).count());
    w.lose(lane);
    let mut values = results.into_iter();
    for (result, place) in function.results {
        let Place::Register(number) = *place else { continue };
        // All texels are there.
        let value = match result {
            Argument::Absent => Some(0),
            Argument::Present => Some(1),
            _ => values.next(),
        };
        if let Some(value) = value {
            w.set_reg(number.into(), lane, value);
        }
    }
    Ok(())
}

/// The word at a place.
fn argument_at(w: &mut Warp, lane: usize, place: Place) -> Result<u32, Fault> {
    match place {
        Place::Register(number) => Ok(w.reg(number.into(), lane)),
        Place::Stack(offset) => {
            let at = w.reg(STACK_POINTER, lane) as usize + usize::from(offset);
            let word = w.local_of(lane).get(at..at + 4);
            word.map(|word| load(word) as u32).ok_or_else(|| Fault::new("an argument beyond the stack".to_string()))
        }
    }
}

impl Asked<'_> {
    fn says(&self, part: Part) -> bool {
        self.function.what.word().is_some_and(|word| word.says(self.word, part))
    }

    fn value(&self, argument: Argument) -> u32 {
        self.args.iter().find(|(own, _)| *own == argument).map_or(0, |(_, value)| *value)
    }

    fn values<const N: usize>(&self, arguments: [Argument; N]) -> [u32; N] {
        arguments.map(|argument| self.value(argument))
    }

    fn check(&self) -> Result<(), String> {
        let word = self.function.what.word();
        if word.is_some_and(|word| word.unknown(self.word) != 0 || !word.says(self.word, Part::Always)) {
            return Err(format!("`{}` is called with the word {:#x}", self.function.name, self.word));
        }
        if self.args.iter().any(|(argument, value)| *argument == Argument::Zero && *value != 0) {
            return Err(format!("`{}` is called with an argument that is not zero", self.function.name));
        }
        Ok(())
    }

    fn texture(&self, global: &mut Global) -> Result<Texture, Fault> {
        let sampler = Some(self.value(Argument::Sampler)).filter(|_| self.says(Part::OwnSampler));
        global.texture(self.value(Argument::Image), sampler)
    }

    /// The layer, and the coordinates.
    fn position(&self, shape: Shape) -> (u32, [u32; 3]) {
        let all = self.values([Argument::X0, Argument::X1, Argument::X2, Argument::X3]);
        match shape.layered {
            true => (all[0], [all[1], all[2], all[3]]),
            false => (0, [all[0], all[1], all[2]]),
        }
    }

    /// The components that are asked for.
    fn read(&self, global: &mut Global) -> Result<Vec<u32>, Fault> {
        let shape = shape(self.function.geometry);
        let (mut layer, at) = self.position(shape);
        let gradients = self.function.what == Call::ReadGradients;
        let level = match self.value(Argument::Level) {
            _ if gradients => {
                let [x0, x1, y0, y1] =
                    self.values([Argument::Dx0, Argument::Dx1, Argument::Dy0, Argument::Dy1]).each(f32::from_bits);
                Level::Gradients([[x0, x1, 0.0], [y0, y1, 0.0]])
            }
            // Kernels have no derivatives: without a level it is the first one.
            level if self.says(Part::IntegerLevel) => Level::Exact(level as i32),
            level if self.says(Part::Floats) && self.function.what == Call::ReadLevel => {
                Level::Number(f32::from_bits(level))
            }
            _ => Level::First,
        };
        let mut offsets = self.value(if gradients { Argument::Shifted } else { Argument::Offsets });
        if gradients {
            offsets >>= 16;
            layer &= 0xffff;
        }
        if !self.says(Part::Offsets) {
            offsets = 0;
        }
        let gather = GATHERED.iter().position(|part| self.says(*part)).map(|component| component as u8);
        let (step, bits) = if gather.is_some() { (8, 6) } else { (4, 4) };
        let offset = |i: u32| ((offsets >> (i * step)) << (32 - bits)) as i32 >> (32 - bits);
        let offsets = [0, 1, 2].each(offset);
        let integer = !self.says(Part::Floats);
        let read = Read { shape, integer, at, layer, level, offsets, gather, sample: None, compare: None };
        let texture = self.texture(global)?;
        let mut fetch = |at, bytes| global.slice(at, bytes, false).map(|bytes| load(bytes));
        let components = texture.sample(&read, &mut fetch)?;
        let asked = components.into_iter().zip(COMPONENTS).filter(|(_, part)| self.says(*part));
        Ok(asked.map(|(value, _)| value).collect())
    }

    /// All components, two halves in a word, of a read with gradients of a volume or a cube.
    fn read_volume(&self, global: &mut Global) -> Result<Vec<u32>, Fault> {
        let shape = shape(self.function.geometry);
        let (layer, at) = self.position(shape);
        let floats = |arguments| self.values::<3>(arguments).each(f32::from_bits);
        let by_x = floats([Argument::Dx0, Argument::Dx1, Argument::Dx2]);
        let by_y = floats([Argument::Dy0, Argument::Dy1, Argument::Dy2]);
        let offsets = self.values([Argument::Offset0, Argument::Offset1, Argument::Offset2]);
        let takes = |argument| self.function.place(argument).map(|_| self.value(argument));
        let read = Read {
            shape,
            integer: false,
            at,
            layer,
            level: Level::Gradients([by_x, by_y]),
            offsets: offsets.each(|offset| offset as i32),
            gather: None,
            sample: None,
            compare: takes(Argument::Compare).map(f32::from_bits),
        };
        let texture = global.texture(self.value(Argument::Image), takes(Argument::Sampler))?;
        let mut fetch = |at, bytes| global.slice(at, bytes, false).map(|bytes| load(bytes));
        let values = texture.sample(&read, &mut fetch)?;
        if self.function.element != Some(ScalarType::F16) {
            return Ok(values.to_vec());
        }
        Ok(values.chunks(2).map(|pair| half(pair[0]) | half(pair[1]) << 16).collect())
    }

    fn query(&self, global: &mut Global) -> Result<Vec<u32>, Fault> {
        let sizes = global.texture(self.value(Argument::Image), None)?.sizes(self.value(Argument::Level));
        let asked = sizes.into_iter().zip([Part::Width, Part::Height, Part::Depth]);
        Ok(asked.filter(|(_, part)| self.says(*part)).map(|(size, _)| size).collect())
    }

    /// The words that are read, if any are.
    fn access(&self, global: &mut Global) -> Result<Vec<u32>, Fault> {
        let shape = shape(self.function.geometry);
        let (layer, at) = self.position(shape);
        let outside = match (self.says(Part::Trap), self.says(Part::Zero)) {
            (true, _) => Outside::Trap,
            (_, true) => Outside::Ignore,
            _ => Outside::Clamp,
        };
        let (act, bytes) = match self.function.what {
            Call::Load => (On::Load, self.bytes()),
            Call::Store if self.says(Part::Packed) => (On::Pack, self.bytes()),
            Call::Store => (On::Store, self.bytes()),
            _ => self.reduction(),
        };
        let spot = Spot { shape, at: at.each(|x| x as i32), layer: layer as i32, bytes: None, outside };
        let values = self.values([Argument::V0, Argument::V1, Argument::V2, Argument::V3]);
        let texture = global.texture(self.value(Argument::Image), None)?;
        access(global, &texture, spot, (act, bytes), &values)
    }

    fn bytes(&self) -> u8 {
        let sizes = [(Part::Bits8, 1), (Part::Bits16, 2), (Part::Bits32, 4), (Part::Bits64, 8), (Part::Bits128, 16)];
        sizes.into_iter().find(|(part, _)| self.says(*part)).map_or(4, |(_, bytes)| bytes)
    }

    fn reduction(&self) -> (On, u8) {
        let operations = [
            (Part::Add, AtomicOp::Add),
            (Part::Min, AtomicOp::Min),
            (Part::Max, AtomicOp::Max),
            (Part::And, AtomicOp::And),
            (Part::Or, AtomicOp::Or),
        ];
        let op = operations.into_iter().find(|(part, _)| self.says(*part)).map_or(AtomicOp::Add, |(_, op)| op);
        let ty = match () {
            () if self.says(Part::S32) => AtomicType::Signed(4),
            () if self.says(Part::U64) => AtomicType::Unsigned(8),
            () if self.says(Part::S64) => AtomicType::Signed(8),
            () => AtomicType::Unsigned(4),
        };
        if self.says(Part::ByBytes) {
            return (On::Reduce(op, ty), super::atomic::bytes(ty));
        }
        (On::ReduceElement(op), if self.says(Part::Element64) { 8 } else { 4 })
    }
}

/// The shape of a geometry.
fn shape(geometry: Option<Geometry>) -> Shape {
    let geometry = geometry.unwrap_or(Geometry::D2d);
    Shape { dimensions: geometry.dimensions() as u8, cube: geometry.is_cube(), layered: geometry.has_layers() }
}
