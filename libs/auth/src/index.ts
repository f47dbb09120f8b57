export { Buyer, CurrentUser, Public, Roles, ROLES_EXTENSION } from './access.decorators.js';
export { AuthModule } from './auth.module.js';
export { type Identity, identityOf, type Role } from './identity.js';
export { KeysUnavailableError, TokenVerifier } from './token-verifier.js';
