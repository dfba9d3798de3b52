import { z } from 'zod';

/** OpenAI's `service_tier`. A request can ask for a lower class than its caller has, never for a higher one. */
export const serviceTier = z.enum(['auto', 'default', 'flex', 'scale', 'priority']);
