export { Buyer, CurrentUser, Public, Roles } from './access.decorators.js';
export { AuthModule } from './auth.module.js';
export { type Identity, identityOf, type Role } from './identity.js';
export { KeysUnavailableError, TokenVerifier } from './token-verifier.js';
