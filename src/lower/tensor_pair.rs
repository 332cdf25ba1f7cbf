//! Lowers `tcgen05.alloc` of two blocks.
//!
//! The even block of the pair allocates in both and sends the first unit to the odd one: a word of
//! shared memory, behind which the barrier of the reserved part completes. The odd block arrives at
//! the even one's barrier when it has taken the word. The parity of the next phase stands beside
//! the barrier, and what runs before the kernel sets both up. Source: ptxas 13.0.88 output.

use super::builder::{Builder, Lowered};
use super::memory::address::{Place, Window};
use super::tensor_memory::Request;
use crate::arrays::Each;
use crate::ori::Operand;
use crate::ori::mods::*;
use crate::ptx::ast;
use crate::tables::{Op, Role};

/// The barrier, and the parity of its next phase.
const BARRIER: i64 = 8;
const PARITY: i64 = 0x10;
/// Bytes of the word that one block sends the other.
const SENT: u32 = 4;
/// The selector of PRMT that puts the rank of a block on top of an address.
const WITH_RANK: u32 = 0x0654;

/// Truth table of the exclusive or of the first two sources.
const XOR: u8 = 0x3c;

impl Builder<'_> {
    /// `tcgen05.alloc.cta_group::2`
    pub(super) fn allocate_in_pair(&mut self, inst: &ast::Instruction) -> Lowered {
        self.one_for_all(|b| {
            let Request { to, count, chosen, never } = b.allocation_request(inst)?;
            let [late, open, own, even, odd, end] = [(); 6].each(|()| b.f.new_block());
            b.branch_if(never, late, open);
            let (units, ones) = b.column_units(count);
            let (rank, low, peer, one) = (b.temp(), b.temp(), b.temp(), b.imm(1));
            let number = b.special_number("SR_CgaCtaId");
            b.put(Op::S2R, &[], &[(Role::D, rank), (Role::S, number)]);
            b.and(low, rank, one);
            b.lop3(peer, rank, one, Operand::zero(), XOR);
            let second = b.temp_pred();
            b.isetp(second, &[NE, AND, U32], low, Operand::zero());
            b.branch_if(chosen.inverted(), end, own);
            b.branch_if(second, odd, even);
            b.send_units(inst, to, [units, ones], peer)?;
            b.enter_after(end, odd);
            b.receive_units(to, ones, peer)?;
            b.enter_after(end, late);
            b.refuse_allocation(to, chosen)?;
            b.enter(end);
            // The other lanes go on when it is done.
            b.all_lanes();
            Ok(())
        })
    }

    /// The even block's part, in one lane.
    fn send_units(
        &mut self,
        inst: &ast::Instruction,
        to: Place,
        [units, ones]: [Operand; 2],
        peer: Operand,
    ) -> Lowered {
        let unit = self.find_units(units, inst);
        self.wait_for_peer()?;
        let barrier = self.peer_barrier(peer)?;
        let there = self.summed(to);
        let there = self.of_block(there, peer);
        let sent = self.imm(SENT);
        let (sent, none) = (self.in_reg(sent), self.literal(0));
        let args = [(Role::D, Operand::zero()), (Role::A, barrier), (Role::Off, none), (Role::B, sent)];
        let arrival = self.put(Op::SYNCS_ARRIVE, &[ARRIVE_RED], &args);
        self.f[arrival].ordered = true;
        let unit = self.in_reg(unit);
        let (pair, none) = (self.pair_of([there, barrier]), self.literal(0));
        self.keep_units(to, ones, unit, Operand::always())?;
        let store = self.put(Op::STAS, &[SIZE_32], &[(Role::A, pair), (Role::Off, none), (Role::B, unit)]);
        self.f[store].ordered = true;
        self.note_exclusive(inst, Operand::always())?;
        self.turn_parity()
    }

    /// The odd block's part, in one lane.
    fn receive_units(&mut self, to: Place, ones: Operand, peer: Operand) -> Lowered {
        self.wait_for_peer()?;
        let (unit, order) = (self.temp(), super::memory::memory_model::Order { strong: true, ..Default::default() });
        self.load_word(unit, SIZE_32, to, &order)?;
        self.keep_units(to, ones, unit, Operand::always())?;
        let (barrier, none) = (self.peer_barrier(peer)?, self.literal(0));
        let args = [(Role::D, Operand::zero()), (Role::A, barrier), (Role::Off, none), (Role::B, Operand::zero())];
        let arrival = self.put(Op::SYNCS_ARRIVE, &[ARRIVE_RED, ARRIVE_ONE], &args);
        self.f[arrival].ordered = true;
        self.turn_parity()
    }

    /// Waits until the other block has done its part.
    fn wait_for_peer(&mut self) -> Lowered {
        let parity = self.kept(PARITY, SIZE_32)?;
        let (phase, shift) = (self.temp(), self.imm(31));
        self.shf(&SHF_L, phase, parity, shift, Operand::zero());
        let [turn, done] = [(); 2].each(|()| self.f.new_block());
        self.enter(turn);
        let (base, at, over) = (self.partition()?, self.literal(BARRIER), self.temp_pred());
        let args = [(Role::Pu, over), (Role::A, base), (Role::Off, at), (Role::B, phase)];
        let check = self.put(Op::SYNCS_PHASECHK, &[TRYWAIT], &args);
        self.f[check].ordered = true;
        self.branch_if(over.inverted(), turn, done);
        Ok(())
    }

    fn peer_barrier(&mut self, peer: Operand) -> Lowered<Operand> {
        let base = self.partition()?;
        let own = self.summed(Place { window: Window::Shared, base, offset: BARRIER });
        Ok(self.of_block(own, peer))
    }

    /// An address of shared memory as that of another block.
    fn of_block(&mut self, at: Operand, rank: Operand) -> Operand {
        let (mapped, selector, at) = (self.temp(), self.imm(WITH_RANK), self.in_reg(at));
        let args = [(Role::D, mapped), (Role::A, rank), (Role::B, selector), (Role::C, at)];
        self.put(Op::PRMT, &[], &args);
        mapped
    }

    fn summed(&mut self, at: Place) -> Operand {
        if at.offset == 0 {
            return at.base;
        }
        let (sum, amount) = (self.temp(), self.imm(at.offset as u32));
        self.add(sum, at.base, amount);
        sum
    }

    fn turn_parity(&mut self) -> Lowered {
        let one = self.imm(1);
        let one = self.in_reg(one);
        self.keep(AOP_XOR, PARITY, one, Operand::always())
    }
}
