//! Textures and surfaces of targets without opcodes for them: calls of functions of the driver.
//!
//! A function is given a word that says what is asked for, the low words of handles, coordinates
//! and values, each at a place of its own (`tables/lowering/image_calls.ron`). All lanes of a call
//! have the same handle: where lanes may have different ones, those that have one call together.
//! The function may wait for all lanes that have not ended, so that lanes elsewhere are counted as
//! ended during the call. Source: ptxas 13.5.37 output for each form. Functions without a word are
//! called as any other function is.

mod gradients;
mod read;
mod surface;

pub(super) use gradients::is_of_volume;

use super::builder::{Builder, Lowered, Refusal};
use super::call::call_site::Target;
use super::texture_handle::Handle;
use crate::arrays::Each;
use crate::ori::{InstId, Operand};
use crate::ptx::ast;
use crate::tables::images::{Argument, Call, FUNCTIONS, Function, Place};
use crate::tables::ptx::Op as PtxOp;
use crate::tables::{Feature, Mod, Op, Role, value};

/// The negation of the first source of LOP3.
const LUT_NOT: u8 = 0x0f;
/// Uniform registers with the handles that lanes call with: a call keeps them.
const TURN: [u16; 2] = [40, 41];

/// Most bytes of the stack that an instruction needs for a call of the driver, on targets where it
/// is one.
pub(super) fn stack_bytes(inst: &ast::Instruction) -> u64 {
    let what = match inst.op {
        PtxOp::Tex | PtxOp::TexBase | PtxOp::TexLevel => Call::ReadLevel,
        PtxOp::TexGrad if is_of_volume(inst) => Call::VolumeGradients,
        PtxOp::TexGrad => Call::ReadGradients,
        _ => return 0,
    };
    let args = FUNCTIONS.iter().filter(|f| f.what == what).flat_map(|f| f.args);
    let end = |(_, place): &(Argument, Place)| match place {
        Place::Stack(at) => u64::from(*at) + 4,
        Place::Register(_) => 0,
    };
    args.map(end).max().unwrap_or(0)
}

impl Builder<'_> {
    /// Whether the driver does what other targets have opcodes for.
    pub(super) fn images_by_call(&self) -> bool {
        self.has(Feature::ImagesByCall)
    }

    /// Does something with the low words of the handles, of a sampler zero if there is none: once
    /// for all lanes, or for all that have the same.
    fn with_handle_words(&mut self, handle: &Handle, emit: impl FnOnce(&mut Self, [Operand; 2]) -> Lowered) -> Lowered {
        match *handle {
            Handle::Bank(at) => {
                let image = self.word_at(at);
                emit(self, [image, Operand::zero()])
            }
            Handle::Banks(image, sampler) => {
                let words = [image, sampler].each(|at| self.word_at(at));
                emit(self, words)
            }
            Handle::Register(image) => self.apart_by_value(TURN[0], image, |b| emit(b, [image, Operand::zero()])),
            Handle::Pair(image, sampler) => self
                .apart_by_value(TURN[0], image, |b| b.apart_by_value(TURN[1], sampler, |b| emit(b, [image, sampler]))),
            Handle::Kept(_) => Err(Refusal::NotBuilt),
        }
    }

    /// Calls a function with these arguments, and zeros for those that are not given; returns what
    /// it gives back as the results that are asked for.
    fn call_image(
        &mut self,
        function: &Function,
        given: &[(Argument, Operand)],
        wanted: &[Argument],
    ) -> Lowered<Vec<Operand>> {
        let value = |argument: Argument| {
            let own = given.iter().find(|(other, _)| *other == argument);
            own.map_or(Operand::zero(), |(_, value)| *value)
        };
        let (mut registers, mut stack) = (Vec::new(), Vec::new());
        for (argument, place) in function.args {
            match place {
                Place::Register(number) => registers.push((*number, value(*argument))),
                Place::Stack(_) => stack.push(value(*argument)),
            }
        }
        self.stack_pointer();
        let frame = self.call_frame(4 * stack.len() as u64);
        for (n, word) in stack.into_iter().enumerate() {
            self.store_argument(4 * n as u64, word, frame);
        }
        let ended = function.what.word().map(|_| self.end_others());
        let mut uses = Vec::new();
        for (number, word) in registers {
            let d = self.fixed(number);
            self.copy(d, word);
            uses.push(d);
        }
        let mut defs = Vec::new();
        for argument in wanted {
            let place = function.results.iter().find(|(own, _)| own == argument);
            let Some((_, Place::Register(number))) = place else { return Err(Refusal::NotBuilt) };
            defs.push(self.fixed(*number));
        }
        self.transfer(Target::System(function.name.to_string()), &mut uses, &defs, frame);
        let results = defs.into_iter().map(|from| {
            let to = self.temp();
            self.copy(to, from);
            to
        });
        let results = results.collect();
        if let Some(ended) = ended {
            self.bring_back(ended);
        }
        Ok(results)
    }

    /// Counts lanes that are elsewhere as ended; returns those that were before.
    fn end_others(&mut self) -> Operand {
        let [ended, active, others] = [(); 3].each(|()| self.temp());
        self.state(Op::BMOV_STATE_R, value::warp_state::MEXITED, (Role::D, ended));
        self.state(Op::BMOV_STATE_R, value::warp_state::MACTIVE, (Role::D, active));
        self.lop3(others, active, Operand::zero(), Operand::zero(), LUT_NOT);
        self.state(Op::BMOV_STATE, value::warp_state::MEXITED, (Role::A, others));
        ended
    }

    /// Waits for the lanes of a call, and counts those as ended that were before it.
    fn bring_back(&mut self, ended: Operand) {
        let wait = self.put(Op::WARPSYNC, &[(Mod::All, value::all::ALL)], &[]);
        self.f[wait].ordered = true;
        self.state(Op::BMOV_STATE, value::warp_state::MEXITED, (Role::A, ended));
    }

    fn state(&mut self, op: Op, which: u8, arg: (Role, Operand)) -> InstId {
        let inst = self.put(op, &[(Mod::WarpState, which)], &[arg]);
        self.f[inst].ordered = true;
        inst
    }

    /// Runs the code of a guarded instruction only where its predicate holds.
    pub(super) fn where_guarded(&mut self, f: impl FnOnce(&mut Self) -> Lowered) -> Lowered {
        let end = self.f.new_block();
        let guard = self.skip_unless_guarded(end);
        f(self)?;
        self.enter(end);
        self.guard = guard;
        Ok(())
    }
}
