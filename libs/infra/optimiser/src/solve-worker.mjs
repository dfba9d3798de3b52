// Runs in a thread of its own, because a solve blocks the thread it runs in. One message in, one message out.
import { parentPort, workerData } from 'node:worker_threads';
import loadHighs from 'highs';

const highs = await loadHighs();
const { program, options } = workerData;
const result = highs.withModel((model) => {
  model.passModel({
    numCols: program.cost.length,
    numRows: program.rowLower.length,
    colCost: program.cost,
    colLower: new Float64Array(program.cost.length),
    colUpper: program.upper,
    rowLower: program.rowLower,
    rowUpper: program.rowUpper,
    matrix: { format: 'csr', numCols: program.cost.length, numRows: program.rowLower.length, starts: program.starts, indices: program.indices, values: program.values },
    integrality: Array.from(program.isWhole, (whole) => (whole === 1 ? highs.constants.variableType.integer : highs.constants.variableType.continuous)),
  });
  model.options.set(options);
  model.run();
  const status = model.getModelStatus();
  const isMip = program.isWhole.some((whole) => whole === 1);
  const found = model.info.get('primal_solution_status') === 2;
  return {
    isOptimal: status === highs.constants.modelStatus.optimal,
    isInfeasible: status === highs.constants.modelStatus.infeasible,
    cost: found ? model.getObjectiveValue() : Number.POSITIVE_INFINITY,
    bound: isMip ? model.info.get('mip_dual_bound') : status === highs.constants.modelStatus.optimal ? model.getObjectiveValue() : 0,
    values: found ? Array.from(model.getSolution().colValue) : [],
  };
});
parentPort.postMessage(result);
