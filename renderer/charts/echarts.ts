// The parts of ECharts that the app draws with; everything else stays out of the bundle.
import { BarChart, CustomChart, LineChart, ScatterChart } from 'echarts/charts';
import {
  AxisPointerComponent,
  BrushComponent,
  DataZoomComponent,
  GridComponent,
  MarkAreaComponent,
  MarkLineComponent,
  TooltipComponent,
} from 'echarts/components';
import * as echarts from 'echarts/core';
import { LabelLayout } from 'echarts/features';
import { CanvasRenderer } from 'echarts/renderers';

echarts.use([
  LineChart,
  BarChart,
  ScatterChart,
  CustomChart,
  GridComponent,
  TooltipComponent,
  AxisPointerComponent,
  DataZoomComponent,
  BrushComponent,
  MarkLineComponent,
  MarkAreaComponent,
  CanvasRenderer,
  // Without it names at the ends of lines stay where they collide.
  LabelLayout,
]);

export { echarts };
export type { EChartsCoreOption as ChartOption, EChartsType as Chart } from 'echarts/core';
