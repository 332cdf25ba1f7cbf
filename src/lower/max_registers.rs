//! Lowers `setmaxnreg`, by which a warp gives registers to its block or takes them.
//!
//! The number that a warp has at entry must be known, or ptxas ignores the operation, and so do we.
//! Giving is one instruction; taking asks again until there are enough. `src/alloc/zones.rs` says
//! which registers may be used where. Source: ptxas 13.0.88 output.

use super::builder::{Builder, Lowered, Refusal};
use super::wgmma::named;
use crate::arrays::Each;
use crate::ori::build::int::LUT_AND_3;
use crate::ori::{File, Operand};
use crate::ptx::ast;
use crate::tables::ptx::Op as PtxOp;
use crate::tables::{Mod, Op, Role};

const ACROSS_UNITS: &str =
    "(C7504) Potential Performance Loss: 'setmaxnreg' ignored to maintain compatibility across compilation units.";
const UNKNOWN: &str =
    "(C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine register count at entry.";

impl Builder<'_> {
    /// `setmaxnreg`
    pub fn set_max_registers(&mut self, inst: &ast::Instruction) -> Lowered {
        let d = &self.source.directives;
        let by_blocks = d.min_blocks_per_sm.is_some() && d.max_threads.or(d.required_threads).is_some();
        let ignored = if self.globals.object {
            Some(ACROSS_UNITS)
        } else if !self.source.is_entry {
            let what = format!("Instruction '{}' in a device function is not implemented", inst.op.name());
            return Err(Refusal::At(inst.pos, what));
        } else {
            (d.max_registers.is_none() && !by_blocks).then_some(UNKNOWN)
        };
        if let Some(why) = ignored {
            if !self.globals.infos.iter().any(|said| said == why) {
                self.globals.infos.push(why.to_string());
            }
            return Ok(());
        }
        let count = self.constant_operand(&inst.operands[0])?;
        let end = self.f.new_block();
        let guard = self.skip_unless_guarded(end);
        if inst.op == PtxOp::SetmaxnregDec {
            self.change_registers(count, None);
        } else {
            self.take_registers(count);
        }
        self.enter(end);
        self.guard = guard;
        Ok(())
    }

    /// Asks for registers until the block has enough of them.
    fn take_registers(&mut self, count: u64) {
        let [again, done] = [(); 2].each(|()| self.f.new_block());
        self.enter(again);
        let taken = Operand::reg(self.f.new_reg(File::UP));
        self.change_registers(count, Some(taken));
        let all = self.temp_pred();
        self.plop3(all, [Operand::always(), Operand::always(), taken], LUT_AND_3);
        self.branch_if(all.inverted(), again, done);
    }

    fn change_registers(&mut self, count: u64, taken: Option<Operand>) {
        self.together();
        let count = self.literal(count as i64);
        let mut args = vec![(Role::A, count)];
        args.extend(taken.map(|taken| (Role::Pu, taken)));
        let word = if taken.is_some() { "TRY_ALLOC.CTAPOOL" } else { "DEALLOC.CTAPOOL" };
        let way = named(Mod::RegPool, word).unwrap_or((Mod::RegPool, 0));
        let change = self.put(Op::SETMAXREG, &[way], &args);
        self.f[change].ordered = true;
    }
}
