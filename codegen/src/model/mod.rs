//! The tables with their names resolved to ids.
//!
//! The laws in `check` and the emitters read this model. Ids are indices in sorted or table order,
//! never hash order.

pub mod choices;
pub mod elf;
pub mod encoding;
pub mod form_syntax;
pub mod helper_text;
pub mod helpers;
pub mod images;
pub mod instructions;
pub mod latency;
pub mod legal;
pub mod legality;
pub mod lowering;
pub mod memory;
pub mod operands;
pub mod ori;
pub mod ptx;
pub mod ranges;
pub mod regclass;
pub mod targets;
pub mod throughput;

use crate::report::Report;
use crate::rows::passes::PassRow;
use crate::rows::phases::{PhaseRow, StepRow};
use crate::rows::registers::KeptRow;
use crate::rows::tuning::TunableRow;
use crate::source::{Row, Sources};

/// All tables.
pub struct Model {
    pub targets: targets::Targets,
    pub ori: ori::Ori,
    pub operands: operands::Operands,
    pub phases: Vec<Row<PhaseRow>>,
    pub steps: Vec<Row<StepRow>>,
    pub passes: Vec<Row<PassRow>>,
    pub tunables: Vec<Row<TunableRow>>,
    pub registers: Vec<Row<KeptRow>>,
    pub elf: elf::Elf,
    pub ptx: ptx::Ptx,
    pub encoding: encoding::Encoding,
    pub legal: legal::Legal,
    pub lowering: lowering::Lowering,
    pub choices: choices::Choices,
    pub images: images::Images,
    pub memory: memory::Memory,
    pub latency: latency::Latency,
    pub throughput: throughput::Throughput,
    pub helpers: helpers::Helpers,
    pub legality: legality::Legality,
    pub regclass: regclass::Regclass,
}

impl Model {
    /// Reads and resolves every table under the root of `sources`.
    pub fn load(sources: &mut Sources, report: &mut Report) -> Model {
        let targets = targets::Targets::load(sources, report);
        let ori = ori::Ori::load(sources, report);
        let operands = operands::Operands::load(sources, &ori, report);
        let phases = sources.rows("phases.ron", report);
        let steps = sources.rows("steps.ron", report);
        let passes = sources.rows("passes.ron", report);
        let tunables = sources.rows("tunables.ron", report);
        let registers = sources.rows("registers.ron", report);
        let mut elf = elf::Elf::load(sources, report);
        elf.inherit(&targets);
        let ptx = ptx::Ptx::load(sources, &targets, report);
        let encoding = encoding::Encoding::load(sources, &targets, &ori, report);
        let lowering = lowering::Lowering::load(sources, &ptx, &ori, &targets, report);
        let names = lowering::Names { ptx: &ptx, ori: &ori, targets: &targets };
        let choices = choices::Choices::load(sources, &names, report);
        let images = images::Images::load(sources, &names, report);
        let legal = legal::Legal::load(sources, report);
        let memory = memory::Memory::load(sources, report);
        let latency = latency::Latency::load(sources, &targets, &ori, report);
        let throughput = throughput::Throughput::load(sources, &targets, &ori, report);
        let helpers = helpers::Helpers::load(sources, &targets, report);
        let legality = legality::Legality::load(sources, &targets, &ori, report);
        let regclass = regclass::Regclass::load(sources, report);
        Model {
            targets,
            ori,
            operands,
            phases,
            steps,
            passes,
            tunables,
            registers,
            elf,
            ptx,
            encoding,
            legal,
            lowering,
            choices,
            images,
            memory,
            latency,
            throughput,
            helpers,
            legality,
            regclass,
        }
    }
}
