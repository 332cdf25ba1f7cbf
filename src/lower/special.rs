//! Special registers: where the value of each stands.
//!
//! Input: a special register of PTX. Output: S2R or CS2R of a numbered register, LDC of a launch constant, or a constant.

use super::builder::{Builder, Lowered, Refusal};
use super::mods::*;
use crate::ori::Operand;
use crate::tables::ptx::SpecialRegister as S;
use crate::tables::{Op, Role};

/// Where a special register's value comes from.
enum Home {
    /// A numbered register, by S2R.
    Numbered(&'static str),
    /// A 32-bit clock-like register, by CS2R.
    Counter(&'static str),
    /// 64 bits of one.
    WideCounter(&'static str),
    /// A word of bank 0.
    Word(u32),
    /// Always zero: the fourth element of a vector.
    Zero,
}

impl Builder<'_> {
    /// The special-register operand of a name in `tables/special_registers.ron`.
    pub fn special_number(&self, name: &str) -> Operand {
        let number = crate::tables::encoding::special_by_name(self.target, name);
        debug_assert!(number.is_some(), "no special register {name}");
        Operand::special(number.unwrap_or(0).into())
    }

    fn home(&self, special: S) -> Lowered<Home> {
        let (ntid, nctaid) = (self.info.ntid, self.info.nctaid);
        Ok(match special {
            S::TidX => Home::Numbered("SR_TID.X"),
            S::TidY => Home::Numbered("SR_TID.Y"),
            S::TidZ => Home::Numbered("SR_TID.Z"),
            S::CtaidX => Home::Numbered("SR_CTAID.X"),
            S::CtaidY => Home::Numbered("SR_CTAID.Y"),
            S::CtaidZ => Home::Numbered("SR_CTAID.Z"),
            S::NtidX => Home::Word(ntid),
            S::NtidY => Home::Word(ntid + 4),
            S::NtidZ => Home::Word(ntid + 8),
            S::NctaidX => Home::Word(nctaid),
            S::NctaidY => Home::Word(nctaid + 4),
            S::NctaidZ => Home::Word(nctaid + 8),
            S::TidW | S::NtidW | S::CtaidW | S::NctaidW => Home::Zero,
            S::Laneid => Home::Numbered("SR_LANEID"),
            S::Warpid => Home::Numbered("SR_VIRTID"),
            S::Smid => Home::Numbered("SR_VIRTUALSMID"),
            S::LanemaskEq => Home::Numbered("SR_EQMASK"),
            S::LanemaskLe => Home::Numbered("SR_LEMASK"),
            S::LanemaskLt => Home::Numbered("SR_LTMASK"),
            S::LanemaskGe => Home::Numbered("SR_GEMASK"),
            S::LanemaskGt => Home::Numbered("SR_GTMASK"),
            S::Clock => Home::Counter("SR_CLOCKLO"),
            S::ClockHi => Home::Counter("SR_CLOCKHI"),
            S::Clock64 => Home::WideCounter("SR_CLOCKLO"),
            S::GlobaltimerLo => Home::Counter("SR_GLOBALTIMERLO"),
            S::GlobaltimerHi => Home::Counter("SR_GLOBALTIMERHI"),
            S::Globaltimer => Home::WideCounter("SR_GLOBALTIMERLO"),
            S::ClusterCtarank => Home::Numbered("SR_CgaCtaId"),
            _ => return Err(Refusal::NotBuilt),
        })
    }

    /// The value of a special register in a fresh register.
    pub fn special_source(&mut self, special: S) -> Lowered<Operand> {
        let d = match self.home(special)? {
            Home::Zero => return Ok(Operand::zero()),
            Home::Numbered(name) => {
                let (d, s) = (self.temp(), self.special_number(name));
                self.put(Op::S2R, &[], &[(Role::D, d), (Role::S, s)]);
                d
            }
            Home::Counter(name) => {
                let (d, s) = (self.temp(), self.special_number(name));
                self.put(Op::CS2R_32, &[], &[(Role::D, d), (Role::S, s)]);
                d
            }
            Home::WideCounter(name) => {
                let (d, s) = (self.temp_pair(), self.special_number(name));
                self.put(Op::CS2R_64, &[], &[(Role::D, d), (Role::S, s)]);
                d
            }
            Home::Word(offset) => {
                let d = self.temp();
                self.put(Op::LDC, &[SIZE_32], &[(Role::D, d), (Role::C, Operand::constant(0, offset as u16))]);
                d
            }
        };
        match special {
            // The warp's number is a field of the thread's place in the machine: 7 bits from bit 8 on.
            S::Warpid => {
                let (shifted, warp) = (self.temp(), self.temp());
                let (first, mask) = (self.imm(8), self.imm(0x7f));
                self.shf(&SHF_R_U32_HI, shifted, Operand::zero(), first, d);
                self.and(warp, shifted, mask);
                Ok(warp)
            }
            _ => Ok(d),
        }
    }
}
